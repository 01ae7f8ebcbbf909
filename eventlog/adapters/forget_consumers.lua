-- Removes consumers of the group that are dead and have nothing left: every restart leaves one.
--
-- KEYS  1 :events
-- ARGV  1 the consumer group  2 the consumer that stays, ours  3 how long (ms) the dead did not ask for anything
-- Returns how many went. One with pending entries stays: they would go with it, unacknowledged.
local gone = 0
for _, fields in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #fields, 2 do consumer[fields[i]] = fields[i + 1] end
  if consumer.name ~= ARGV[2] and consumer.pending == 0 and consumer.idle > tonumber(ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
    gone = gone + 1
  end
end
return gone
