-- The part that reads a key which may be shared. Returns nil if the key is free and false if it is shared. Returns a table for a set of
-- another program, like for a key of another type.
local function value_of(name)
  local found = redis.pcall('ZRANGE', name, 0, 0, 'WITHSCORES')
  if not found.err then
    return found[1] and not are_ours(found) and redis.pcall('GET', name)
  elseif string.find(found.err, 'WRONGTYPE', 1, true) then
    return redis.pcall('GET', name)
  end
  -- This call raises the error.
  return redis.call('ZRANGE', name, 0, 0)
end
local value = value_of(lock)
