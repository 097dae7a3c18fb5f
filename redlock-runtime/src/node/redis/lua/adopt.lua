-- The start of extend.lua, for a lock that another token was left with: this one takes its place.
-- ARGV[3] the token that the lock was left with
-- An error counts as a lock that is not: what it means is decided later.
local left_with = redis.pcall('GET', lock)
if left_with == ARGV[3] then
  redis.call('SET', lock, token, 'PX', ARGV[2])
elseif left_with == ARGV[3] .. '+' then
  -- Others wait: the mark of lock.lua.
  redis.call('SET', lock, token .. '+', 'PX', ARGV[2])
end
