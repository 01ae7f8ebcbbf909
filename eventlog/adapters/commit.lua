-- Appends an intent or an outcome to the journal, unless a later leader has committed.
--
-- KEYS  1 :passes  stream of the journal      2 :epoch  string, the highest epoch that has committed
--       3 :events  stream of entries          4... :proj:<name>  hashes of read models
-- ARGV  1 epoch  2 'intent' or 'outcome'  3 body  4 consumer group
--       5 number of ids to acknowledge, then the ids
--       then per read model: number of fields, and name and value of each; an empty value takes the field away
-- Returns the id of the journal entry. Error FENCED <epoch> when a later epoch has committed,
-- FOREIGN <key> when the stored epoch is no number.
local stored = tonumber(redis.call('GET', KEYS[2]) or '-1')
if not stored then return redis.error_reply('FOREIGN ' .. KEYS[2] .. ' holds no epoch') end
if stored > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED ' .. stored)
end
redis.call('SET', KEYS[2], ARGV[1])
local at = 6
for i = 1, tonumber(ARGV[5]) do
  redis.call('XACK', KEYS[3], ARGV[4], ARGV[at])
  at = at + 1
end
for k = 4, #KEYS do
  local fields = tonumber(ARGV[at])
  at = at + 1
  for _ = 1, fields do
    if ARGV[at + 1] == '' then
      redis.call('HDEL', KEYS[k], ARGV[at])
    else
      redis.call('HSET', KEYS[k], ARGV[at], ARGV[at + 1])
    end
    at = at + 2
  end
end
return redis.call('XADD', KEYS[1], '*', 'what', ARGV[2], 'body', ARGV[3])
