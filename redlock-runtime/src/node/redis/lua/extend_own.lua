-- Restarts the lease of locks whose queues the user may not use; never creates a lock.
--
-- KEYS the locks   ARGV[1] the token   ARGV[2] the ttl in ms
-- ARGV[3] the token that the locks were left with, whose place this one takes; empty for none
-- ARGV[4] 'late' if other commands about the token may have been sent before this one: it then makes no lease shorter, as in late.lua
--
-- - `{0}`: extended; the waiters are unknown
-- - `{-1}`: the token does not hold all of the locks
--
-- Every reply ends with the time of the server, as in extend.lua. A lock with several holders cannot be extended without its queue.
local token, from, values = ARGV[1], ARGV[3], {}
local time = '@' .. table.concat(redis.pcall('TIME'), '.')
for at, lock in ipairs(KEYS) do
  local value = redis.pcall('GET', lock)
  if type(value) == 'table' then
    return string.find(value.err, 'WRONGTYPE', 1, true) and redis.error_reply('NOPERM No permissions to access a key') or value
  end
  local holder = value and string.sub(value, 1, TOKEN_LEN)
  if not value or holder ~= token and (from == '' or holder ~= from) or not ENDINGS[string.sub(value, TOKEN_LEN + 1)] then
    return {-1, time}
  end
  values[at] = value
end
for at, lock in ipairs(KEYS) do
  local ttl = ARGV[2] + 0
  ttl = ARGV[4] == 'late' and math.max(redis.call('PTTL', lock), ttl) or ttl
  -- A server that is full does not let a script begin with a SET.
  redis.call('PEXPIRE', lock, ttl)
  if string.sub(values[at], 1, TOKEN_LEN) ~= token then
    redis.call('SET', lock, token .. string.sub(values[at], TOKEN_LEN + 1), 'PX', ttl)
  end
end
return {0, time}
