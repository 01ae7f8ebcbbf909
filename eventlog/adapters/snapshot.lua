-- Keeps a snapshot, unless a later leader has committed or a newer one is kept.
--
-- KEYS  1 :snapshot  hash of position (ms and sequence apart, to compare) and body   2 :epoch
-- ARGV  1 epoch  2 position  3 its ms  4 its sequence  5 body
-- Returns 1, or 0 when a newer one is kept. Error FENCED <epoch> when a later epoch has committed,
-- FOREIGN <key> when the stored epoch is no number.
local stored = tonumber(redis.call('GET', KEYS[2]) or '-1')
if not stored then return redis.error_reply('FOREIGN ' .. KEYS[2] .. ' holds no epoch') end
if stored > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED ' .. stored)
end
local kept = redis.call('HMGET', KEYS[1], 'ms', 'sequence')
if kept[1] then
  local ms, sequence = tonumber(kept[1]), tonumber(kept[2])
  if ms > tonumber(ARGV[3]) or (ms == tonumber(ARGV[3]) and sequence > tonumber(ARGV[4])) then return 0 end
end
redis.call('HSET', KEYS[1], 'position', ARGV[2], 'ms', ARGV[3], 'sequence', ARGV[4], 'body', ARGV[5])
return 1
