-- The part that reads the lock for those who share it: false when readers have it, or nobody.
local value = redis.pcall('ZCARD', lock)
if type(value) == 'number' then
  value = false
elseif string.find(value.err, 'WRONGTYPE', 1, true) then
  value = redis.pcall('GET', lock)
else
  -- This call raises the error.
  redis.call('ZCARD', lock)
end
