-- Removes the oldest entries of a stream that are too old or too many, and nothing that is still needed.
--
-- KEYS  1 :events or :passes
--       2 :snapshot, for :events: what is behind its position, and acknowledged, may go; without one, nothing
-- ARGV  1 the consumer group  2 time (ms) before which an entry is too old  3 how many may stay  4 how many may go now
-- Returns how many went. The group's oldest pending entry and the snapshot's own entry stay.
local function parts(id)
  local ms, sequence = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(sequence)
end
local function earlier(a, b)
  local a_ms, a_sequence = parts(a)
  local b_ms, b_sequence = parts(b)
  if a_ms < b_ms or (a_ms == b_ms and a_sequence < b_sequence) then return a end
  return b
end
local length = redis.call('XLEN', KEYS[1])
if length == 0 then return 0 end
local may_go = tonumber(ARGV[4])
local from = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', may_go + 1)
-- The first entry that stays, were it for age and number alone.
local stays = math.min(may_go, length - 1, length - tonumber(ARGV[3])) + 1
stays = math.max(1, stays)
while stays <= may_go and from[stays + 1] and parts(from[stays][1]) < tonumber(ARGV[2]) do stays = stays + 1 end
local cut = from[stays][1]
if KEYS[2] then
  local position = redis.call('HGET', KEYS[2], 'position')
  if not position then return 0 end
  local pending = redis.call('XPENDING', KEYS[1], ARGV[1])
  cut = earlier(cut, position)
  if pending[1] > 0 then cut = earlier(cut, pending[2]) end
end
return redis.call('XTRIM', KEYS[1], 'MINID', '=', cut)
