-- The start of extend.lua, for a lock that another token was left with: this one takes its place.
-- ARGV[3] the token that the lock was left with
-- An error counts as a lock that is not: what it means is decided later.
if redis.pcall('GET', lock) == ARGV[3] then
  redis.call('SET', lock, token, 'PX', ARGV[2])
end
