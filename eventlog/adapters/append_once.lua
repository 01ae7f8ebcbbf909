-- Appends entries of one kind to the events, in order, each change once, whoever sees it first.
--
-- KEYS  1 :events       stream of entries
--       2 :identity     string, the identity of the log
--       3 :seen:<kind>  hash, uid -> version digest namespace name state, separated by \31; state is L(iving) or D(eleted)
--       4 :tombs:<kind> zset of deleted uids by the time (ms) after which no laggard can speak of them any more
-- ARGV  1 identity that the caller listed for  2 now (ms)  3 lifetime of a tombstone (ms)
--       4 id of the newest entry of the log when the caller last appended, or empty
--       then twelve per entry:
--       what: 'c'hange, 'd'elete or 'm'ark (an entry about no object: always appended); digest of the lean object;
--       and the values of v t k ns n u rv w ts o
-- Returns for each entry 1 when it was appended, 0 when it is known, older, or leaves the lean object as it was;
-- then the id of the newest entry of the log, or empty.
-- Nothing is appended on error: REPLACED when the log is not the one that the caller listed for; LOST when the entry
-- that the caller knew as the newest is gone without being trimmed, as after a failover to a replica that lagged:
-- what the caller takes for told, by itself or by others, may be gone with it. Trimming leaves the newest entry.
--
-- resourceVersions are decimal numbers of any length: the longer is the newer, then the later in text.
local groups = redis.call('EXISTS', KEYS[1]) == 1 and redis.call('XINFO', 'GROUPS', KEYS[1]) or {}
if redis.call('GET', KEYS[2]) ~= ARGV[1] or #groups == 0 then
  return redis.error_reply('REPLACED the log has another identity, or its stream has gone')
end
if ARGV[4] ~= '' and #redis.call('XRANGE', KEYS[1], ARGV[4], ARGV[4]) == 0 then
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)
  if #oldest == 0 or #redis.call('XRANGE', KEYS[1], '-', ARGV[4], 'COUNT', 1) == 1 then
    return redis.error_reply('LOST entry ' .. ARGV[4])
  end
end
local now, appended, newest = ARGV[2], {}, ''
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, 100)) do
  redis.call('HDEL', KEYS[3], gone)
  redis.call('ZREM', KEYS[4], gone)
end
for i = 5, #ARGV, 12 do
  local what, digest, ns, name, uid, version = ARGV[i], ARGV[i + 1], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], ARGV[i + 8]
  local deleted, known, fresh = what == 'd', what == 'm', true
  if what ~= 'm' then
    local old = redis.call('HGET', KEYS[3], uid)
    local old_version, old_digest, state
    if old then
      old_version, old_digest, state = string.match(old, '^([^\31]*)\31([^\31]*)\31[^\31]*\31[^\31]*\31(.)$')
    end
    fresh = not deleted
    if old_version then
      local newer = #version > #old_version or (#version == #old_version and version > old_version)
      known = state == 'D' or not newer
      fresh = not known and (deleted or old_digest ~= digest)
    end
  end
  if fresh then
    newest = redis.call('XADD', KEYS[1], '*', 'v', ARGV[i + 2], 't', ARGV[i + 3], 'k', ARGV[i + 4], 'ns', ns, 'n', name,
      'u', uid, 'rv', version, 'w', ARGV[i + 9], 'ts', ARGV[i + 10], 'o', ARGV[i + 11])
  end
  -- Told first, remembered then: where the user lacks one of the rights, a change is told twice, and never not at all.
  if not known then
    redis.call('HSET', KEYS[3], uid, table.concat({version, digest, ns, name, deleted and 'D' or 'L'}, '\31'))
    if deleted then redis.call('ZADD', KEYS[4], now + ARGV[3], uid) end
  end
  appended[#appended + 1] = fresh and 1 or 0
end
if newest == '' then
  local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
  newest = last[1] and last[1][1] or ''
end
appended[#appended + 1] = newest
return appended
