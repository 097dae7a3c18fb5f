-- The middle of extend.lua, for a lock that others wait for. It stands before the functions of the other parts, as in
-- release_marked.lua.
if value == token .. MARK then
  redis.call('PEXPIRE', lock, ARGV[2])
  local last, is_among = latest()
  local newest = last and is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil
  local waiting = last and (is_among and redis.call('ZCOUNT', queue, ALONE, SHARING) or redis.call('ZCARD', queue))
  return {waiting or 0, '@' .. table.concat(redis.pcall('TIME'), '.'), newest}
end
