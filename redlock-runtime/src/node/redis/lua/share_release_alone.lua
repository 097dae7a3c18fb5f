-- The start of share_release.lua, for a lock without waiters.
if redis.pcall('GET', lock) == token .. READER then
  redis.call('DEL', lock)
  return {1}
end
local ends = redis.pcall('ZSCORE', lock, token)
if type(ends) == 'string' and redis.pcall('ZCARD', queue) == 0
  and are_readers(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')) then
  local clock = redis.pcall('TIME')
  redis.call('ZREM', lock, token)
  -- The key expires with its last remaining member, if this user may run TIME.
  local last = clock[2] and redis.pcall('ZRANGE', lock, -1, -1, 'WITHSCORES')[2]
  local now = clock[2] and SHARE + clock[1] * 1000 + math.floor(clock[2] / 1000) or 0
  if last then
    redis.call('PEXPIRE', lock, last - now)
  end
  return {ends + 0 > now and 1 or -1}
end
