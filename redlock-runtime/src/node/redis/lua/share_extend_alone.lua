-- The start of share_extend.lua, for a token that holds its share.
if redis.pcall('GET', lock) == token .. READER then
  local time, ttl = '@' .. table.concat(redis.pcall('TIME'), '.'), ARGV[2] + 0
  -- A late command makes no lease shorter, as in late.lua.
  redis.call('PEXPIRE', lock, ARGV[5] == 'late' and math.max(redis.call('PTTL', lock), ttl) or ttl)
  return {0, time}
end
local ends = redis.pcall('ZSCORE', lock, token)
if type(ends) == 'string' and are_readers(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')) then
  local clock = redis.call('TIME')
  local now, ttl = SHARE + clock[1] * 1000 + math.floor(clock[2] / 1000), ARGV[2] + 0
  if ends + 0 > now then
    -- A full server does not let a script begin with a ZADD.
    local left = redis.call('PTTL', lock)
    redis.call('PEXPIRE', lock, math.max(left, ttl))
    -- A late command makes no lease shorter, as in late.lua.
    local at = ARGV[5] == 'late' and math.max(ends + 0, now + ttl) or now + ttl
    redis.call('ZADD', lock, 'XX', string.format('%.0f', at), token)
    if left > ttl then
      -- The key expires with its last member, which this one may have been.
      redis.call('PEXPIRE', lock, redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2] - now)
    end
    local time = '@' .. table.concat(clock, '.')
    if redis.pcall('ZCARD', queue) == 0 then
      return {0, time}
    end
    local last = latest()
    local newest = last and is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil
    local waiters = 0
    -- The scores of waiters that conflict with a share, as in readers.lua.
    for _, line in ipairs({ALONE, 2, SEVERAL}) do
      local count = redis.pcall('ZCOUNT', queue, line, line)
      waiters = waiters + (type(count) == 'number' and count or 0)
    end
    return {waiters, time, newest}
  end
end
