-- Appends one entry to the events, once per change, whoever sees it first.
--
-- KEYS  1 :events       stream of entries
--       2 :identity     string, the identity of the log
--       3 :seen:<kind>  hash, uid -> version digest namespace name state, separated by \31; state is L(iving) or D(eleted)
--       4 :tombs:<kind> zset of deleted uids by the time (ms) after which no laggard can speak of them any more
-- ARGV  1 identity that the caller listed for
--       2 what: 'change', 'delete' or 'mark' (an entry about no object: always appended)
--       3 uid  4 resourceVersion  5 digest of the lean object  6 namespace  7 name
--       8 now (ms)  9 lifetime of a tombstone (ms)
--       10... the fields of the entry, name and value in turn
-- Returns 1 when it was appended, 0 when it is known, older, or leaves the lean object as it was.
-- Error REPLACED when the log is not the one the caller listed for.
--
-- resourceVersions are decimal numbers of any length: the longer is the newer, then the later in text.
if redis.call('GET', KEYS[2]) ~= ARGV[1] then
  return redis.error_reply('REPLACED the log has another identity')
end
local what, uid, version, digest = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local fresh = true
if what ~= 'mark' then
  local old = redis.call('HGET', KEYS[3], uid)
  local deleted = what == 'delete'
  fresh = not deleted
  if old then
    local old_version, old_digest, state = string.match(old, '^([^\31]*)\31([^\31]*)\31[^\31]*\31[^\31]*\31(.)$')
    local newer = #version > #old_version or (#version == #old_version and version > old_version)
    if state == 'D' or not newer then return 0 end
    fresh = deleted or old_digest ~= digest
  end
  redis.call('HSET', KEYS[3], uid, table.concat(
    {version, digest, ARGV[6], ARGV[7], deleted and 'D' or 'L'}, '\31'))
  if deleted then redis.call('ZADD', KEYS[4], ARGV[8] + ARGV[9], uid) end
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', ARGV[8], 'LIMIT', 0, 10)) do
    redis.call('HDEL', KEYS[3], gone)
    redis.call('ZREM', KEYS[4], gone)
  end
end
if not fresh then return 0 end
redis.call('XADD', KEYS[1], '*', unpack(ARGV, 10))
return 1
