-- The beginning of the general part of release.lua, for a user who may not run TIME, ZSCORE or ZCOUNT. The token releases its hold; the waiters
-- notice the release when they ask again.
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  -- The lock could not be read. This call raises the error, so that the client repeats the release.
  redis.call('GET', lock)
end
if redis.pcall('TIME').err or type(redis.pcall('ZSCORE', queue, token)) == 'table' or type(redis.pcall('ZCOUNT', queue, 0, 0)) == 'table' then
  -- Another program may use the key of the queue.
  redis.pcall('ZREM', queue, token, token .. '#')
  local is_ours = type(value) == 'string' and string.sub(value, 1, TOKEN_LEN) == token and ENDINGS[string.sub(value, TOKEN_LEN + 1)]
  if is_ours and redis.call('DEL', lock) == 1 or not value and redis.call('ZREM', lock, token) == 1 then
    return {1}
  end
  return {-1}
end
is_leaving = true
