-- The middle of extend.lua, for a lock with waiters. It comes before the functions of the other parts, see release_marked.lua.
if value == token .. MARK then
  redis.call('PEXPIRE', lock, ARGV[2])
  local last, is_among = latest()
  local newest = last and is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil
  local waiting = is_among and redis.pcall('ZCOUNT', queue, ALONE, LAST_LINE)
  if type(waiting) ~= 'number' then
    -- If the user may not use shared locks, the entries beside the tokens are counted, too.
    waiting = last and redis.call('ZCARD', queue)
  end
  return {waiting or 0, '@' .. table.concat(redis.pcall('TIME'), '.'), newest}
end
