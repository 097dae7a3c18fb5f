-- The start of extend.lua, for a lock that nobody has come to wait for.
-- An error counts as somebody: what it means is decided later.
if value == token then
  redis.call('PEXPIRE', lock, ARGV[2])
  return {0, '@' .. table.concat(redis.pcall('TIME'), '.')}
end
