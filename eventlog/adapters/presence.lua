-- Shows that a watcher replica lives, and tells which do.
--
-- KEYS  1 :watchers  hash, replica -> when it last showed itself (ms, this server's clock)
-- ARGV  1 the replica that shows itself, or empty  2 how recent counts (ms)  3 when to forget a replica (ms)
-- Returns the replicas that showed themselves recently.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], ARGV[1], now) end
local shown, present = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #shown, 2 do
  local age = now - shown[i + 1]
  if age <= tonumber(ARGV[2]) then present[#present + 1] = shown[i] end
  if age > tonumber(ARGV[3]) then redis.call('HDEL', KEYS[1], shown[i]) end
end
return present
