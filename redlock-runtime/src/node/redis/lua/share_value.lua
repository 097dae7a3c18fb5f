-- The part that reads the lock for those who share it: false when readers have it, or nobody; a table for the set of another
-- program, as for a key of another type.
local value = redis.pcall('ZRANGE', lock, 0, 0, 'WITHSCORES')
if not value.err then
  value = value[1] and not are_readers(value) and redis.pcall('GET', lock)
elseif string.find(value.err, 'WRONGTYPE', 1, true) then
  value = redis.pcall('GET', lock)
else
  -- This call raises the error.
  redis.call('ZRANGE', lock, 0, 0)
end
