-- Removes the lock of another program. It is not part of the protocol, and not loaded in advance.
--
-- KEYS[1] the lock   ARGV[1] its value
--
-- Returns 1 if the lock was removed. Returns 0 if the value has changed, or if the key has no expiry: it holds data.
if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PTTL', KEYS[1]) >= 0 then
  return redis.call('DEL', KEYS[1])
end
return 0
