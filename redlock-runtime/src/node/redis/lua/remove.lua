-- Removes the lock of another program. It is no part of the protocol, and not loaded beforehand.
-- KEYS[1] the lock   ARGV[1] its value
-- 1 removed, 0 it is something else by now, or it does not expire, as data does not
if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PTTL', KEYS[1]) >= 0 then
  return redis.call('DEL', KEYS[1])
end
return 0
