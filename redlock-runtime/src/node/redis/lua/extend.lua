-- Starts a lease anew; never creates a lock.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl in ms
-- 0 or {n}   extended, and n tokens wait (0 comes from extend_alone.lua)
-- {-1}       the token does not own the lock
-- and at the end of an array the time of the newest token, if it is newer than this one
local holder, last = find_holder(), waiter(-1)
if holder ~= token then
  return {-1, newest(holder, last)}
end
redis.call('PEXPIRE', lock, ARGV[2])
return {last and redis.call('ZCARD', queue) or 0, newest(holder, last)}
