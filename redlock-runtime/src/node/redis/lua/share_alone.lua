-- The start of the scripts that take a share, for a lock without waiters that is free or held by readers. Returns {1, 0} as in acquire.lua.
--
-- The only holder is a string: its token and a letter. No token waits for it, because a token that comes to wait makes it a set
-- (readers.lua). While a cluster moves the slot, the queue is unknown.
--
-- A full server refuses the SET. The rest of the script then finds out if it has to write.
if queue ~= lock and redis.pcall('ZCARD', queue) == 0 and (redis.pcall('SET', lock, token .. READER, 'NX', 'PX', ARGV[2]) or {}).ok then
  return {1, 0}
end
-- Renewals need ZSCORE and ZCOUNT. A user without these commands is refused by the rest of the script, before anything is written.
local may_go_on = type(redis.pcall('ZSCORE', lock, token)) ~= 'table' and redis.pcall('ZCOUNT', queue, '-inf', '+inf') == 0
local last = may_go_on and redis.pcall('ZRANGE', lock, -1, -1, 'WITHSCORES')
local is_free = last and not last.err and not last[1]
-- A set without an expiry belongs to another program, too.
local left = is_free and 0 or last and are_readers(last) and redis.call('PTTL', lock) or -1
if left >= 0 then
  local clock, ttl = redis.call('TIME'), ARGV[2] + 0
  local now = SHARE + clock[1] * 1000 + math.floor(clock[2] / 1000)
  -- A server that is full refuses this command, and nothing is changed.
  redis.call('ZADD', lock, string.format('%.0f', now + ttl), token)
  if left < ttl and type(redis.pcall('PEXPIRE', lock, ARGV[2])) == 'table' then
    -- A member that never expires would stay. The second call raises the error.
    redis.pcall('ZREM', lock, token)
    redis.call('PEXPIRE', lock, ARGV[2])
  end
  -- Removes expired shares. Every user may run these commands, so that the script cannot fail halfway.
  local ended = is_free and {} or redis.call('ZRANGE', lock, SHARE, string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, MOST_ENDED)
  if ended[1] then
    redis.call('ZREM', lock, unpack(ended))
  end
  if left > ttl then
    -- The key expires with its last member, which this one may have been.
    redis.call('PEXPIRE', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2] - now)
  end
  return {1, 0}
end
