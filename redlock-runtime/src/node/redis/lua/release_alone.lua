-- The start of release.lua, for a lock without waiters. If the lock could not be read, `value` is a table and equals no token: the script
-- continues, and readers.lua handles the error.
if value == token then
  redis.call('DEL', lock)
  return 1
end
