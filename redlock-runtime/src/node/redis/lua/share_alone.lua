-- The start of the scripts that take a share, for a lock that nobody waits for: it is free, or readers have it.
-- {1, 0} as in acquire.lua
-- Renewals need ZSCORE and ZCOUNT. A user without them is refused by what follows, before anything is written.
local may_go_on = type(redis.pcall('ZSCORE', lock, token)) ~= 'table' and redis.pcall('ZCOUNT', queue, '-inf', '+inf') == 0
local last = may_go_on and redis.pcall('ZRANGE', lock, -1, -1, 'WITHSCORES')
local is_free = last and not last.err and not last[1]
-- A set without an expiry is that of another program as well.
local left = is_free and 0 or last and are_readers(last) and redis.call('PTTL', lock) or -1
if left >= 0 then
  local clock, ttl = redis.call('TIME'), ARGV[2] + 0
  local now = SHARE + clock[1] * 1000 + math.floor(clock[2] / 1000)
  -- A server that is full refuses this, and nothing is done.
  redis.call('ZADD', lock, string.format('%.0f', now + ttl), token)
  if left < ttl and type(redis.pcall('PEXPIRE', lock, ARGV[2])) == 'table' then
    -- What never expires would stay. The second call raises the error.
    redis.pcall('ZREM', lock, token)
    redis.call('PEXPIRE', lock, ARGV[2])
  end
  -- Removes expired shares. Every user may run these commands, so that the script cannot fail halfway.
  local ended = is_free and {} or redis.call('ZRANGE', lock, SHARE, string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, MOST_ENDED)
  if ended[1] then
    redis.call('ZREM', lock, unpack(ended))
  end
  if left > ttl then
    -- The key expires with the last of them, which this one may have been.
    redis.call('PEXPIRE', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2] - now)
  end
  return {1, 0}
end
