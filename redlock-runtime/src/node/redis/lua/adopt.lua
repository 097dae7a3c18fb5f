-- The start of extend.lua, for a lock that another token was left with: this one takes its place.
-- ARGV[3] the token that the lock was left with
-- An error counts as a lock that is not: what it means is decided later.
-- With the mark of lock.lua, others wait.
if value == ARGV[3] or value == ARGV[3] .. '+' then
  value = token .. string.sub(value, 70)
  redis.call('SET', lock, value, 'PX', ARGV[2])
end
