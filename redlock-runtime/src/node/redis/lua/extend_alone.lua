-- The start of extend.lua, for a lock that nobody waits for.
-- An error counts as somebody: what it means is decided later.
if redis.pcall('GET', lock) == token and redis.pcall('ZCARD', queue) == 0 then
  redis.call('PEXPIRE', lock, ARGV[2])
  return {0, '@' .. table.concat(redis.pcall('TIME'), '.')}
end
