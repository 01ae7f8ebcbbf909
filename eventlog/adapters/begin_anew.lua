-- Drops what the log holds of a cluster that has gone back in time, and gives it a new identity.
--
-- KEYS  1 :identity  2... what goes: :events, and :seen and :tombs of every kind
-- ARGV  1 identity that the caller listed for  2 the new identity
-- Returns 1, or 0 when the log has another identity already: someone else was first.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
