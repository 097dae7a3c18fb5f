-- Starts a lease anew; never creates a lock.
-- KEYS[1] the lock   ARGV[1] the owner token   ARGV[2] the ttl in milliseconds
-- 1  extended
-- 0  the token does not own the lock
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
