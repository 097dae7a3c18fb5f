-- The part that reads a name for those who may have it together: nil when nobody has it, false when some have it so; a table
-- for the set of another program, as for a key of another type.
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
