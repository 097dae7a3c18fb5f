-- The start of the scripts that take a share, for a lock that nobody waits for: it is free, or readers have it.
-- {1, 0} as in acquire.lua
local sharing = redis.pcall('ZCARD', queue) == 0 and redis.pcall('ZCARD', lock)
-- A set without an expiry is that of another program.
local left = type(sharing) == 'number' and (sharing == 0 and 0 or redis.call('PTTL', lock)) or -1
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
  if sharing > 0 then
    redis.call('ZREMRANGEBYSCORE', lock, SHARE, string.format('%.0f', now))
  end
  return {1, 0}
end
