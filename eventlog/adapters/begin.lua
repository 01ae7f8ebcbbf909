-- Tells the identity of the log, and begins a log where there is none that is whole.
--
-- KEYS  1 :identity  2 :events
--       3... what goes with an old log: :snapshot, :epoch, and :seen and :tombs of every kind
-- ARGV  1 identity of a log that must go, or empty  2 identity of a log that begins now  3 the consumer group
-- Returns the identity.
--
-- A stream is made with its group: where the group is missing, the stream was deleted, and may have been made
-- again without what it held. What was seen is void then, or its objects would never be told again.
local function has_group()
  local groups = redis.call('EXISTS', KEYS[2]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[2]) or {}
  for _, group in ipairs(groups) do
    if group[2] == ARGV[3] then return true end
  end
  return false
end
local identity = redis.call('GET', KEYS[1])
if identity and identity ~= ARGV[1] and has_group() then return identity end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('XGROUP', 'CREATE', KEYS[2], ARGV[3], '0', 'MKSTREAM')
return ARGV[2]
