-- The start of extend.lua, for a lock that nobody has come to wait for.
-- When the lock could not be read, `value` is a table and equals no token: the script goes on, and lock.lua decides what
-- the error means.
if value == token then
  redis.call('PEXPIRE', lock, ARGV[2])
  return {0, '@' .. table.concat(redis.pcall('TIME'), '.')}
end
