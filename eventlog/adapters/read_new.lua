-- Hands out entries that the group has not handed out yet, if it stands where the reader left it.
--
-- KEYS  1 :events  2 :identity
-- ARGV  1 identity of the log that the reader reads  2 the consumer group  3 the consumer  4 how many at most
--       5 id of the last entry handed out, as far as the reader knows
-- Returns the id of the last entry handed out now, then the entries as XRANGE gives them.
-- Nothing is handed out on error: REPLACED when the log is another one or has no group; MISSED <id> when the group
-- stands at another entry, because an answer got lost or another reader took entries.
local groups = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[1]) or {}
local stands_at
for _, group in ipairs(groups) do
  if group[2] == ARGV[2] then
    for i = 1, #group, 2 do
      if group[i] == 'last-delivered-id' then stands_at = group[i + 1] end
    end
  end
end
if not stands_at or redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return redis.error_reply('REPLACED the log has another identity, or its stream has gone')
end
if ARGV[5] ~= stands_at then return redis.error_reply('MISSED ' .. stands_at) end
local streams = redis.call('XREADGROUP', 'GROUP', ARGV[2], ARGV[3], 'COUNT', ARGV[4], 'STREAMS', KEYS[1], '>')
local entries = streams and streams[1] and streams[1][2] or {}
return {#entries > 0 and entries[#entries][1] or stands_at, entries}
