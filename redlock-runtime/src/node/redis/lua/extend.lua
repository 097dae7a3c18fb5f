-- Restarts a lease; never creates a lock.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl in ms
--
-- - `{n}`: extended, and n tokens wait
-- - `{-1}`: the token does not hold the lock
--
-- Every reply ends with the time of the server as `@seconds.microseconds`, only `@` for a user who may not run TIME. The time of the newest
-- token follows, if it is newer than this one.
local holder, is_marked = find_holder()
local last, is_among
if is_marked or holder ~= token then
  last, is_among = latest()
end
local time = '@' .. table.concat(redis.pcall('TIME'), '.')
if holder ~= token then
  return {-1, time, newest(holder, last)}
end
redis.call('PEXPIRE', lock, ARGV[2])
local waiting = 0
if last then
  waiting = is_among and redis.pcall('ZCOUNT', queue, ALONE, LAST_LINE)
  -- If the user may not use shared locks, the entries beside the tokens are counted, too.
  waiting = type(waiting) == 'number' and waiting or redis.call('ZCARD', queue)
end
return {waiting, time, newest(holder, last)}
