-- Gives a lock back.
-- KEYS[1] the lock   ARGV[1] the owner token
-- 1  released
-- 0  the token does not own the lock
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
