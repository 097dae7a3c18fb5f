-- Takes a lock like the plain SET, for a user who may lack the permission for a queue: the server then refuses the command because of its
-- keys, before it runs.
--
-- KEYS[1] the lock   KEYS[2] its queue, which is not used   ARGV[1] the token   ARGV[2] the ttl in ms
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
