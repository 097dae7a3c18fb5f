-- The middle of extend.lua, for a lock that others wait for. It stands before the functions of the other parts, as in
-- release_marked.lua.
if value == token .. MARK then
  redis.call('PEXPIRE', lock, ARGV[2])
  local last = redis.pcall('ZRANGE', queue, -1, -1)[1]
  local newest = last and is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil
  return {last and redis.call('ZCARD', queue) or 0, '@' .. table.concat(redis.pcall('TIME'), '.'), newest}
end
