-- Releases locks whose queues the user may not use. The waiters notice the release when they ask again.
--
-- KEYS the locks   ARGV[1] the token
--
-- - `{1}`: released
-- - `{-1}`: the token does not hold all of the locks
local token, is_ours = ARGV[1], true
for _, lock in ipairs(KEYS) do
  local value, removed = redis.pcall('GET', lock), 0
  if type(value) == 'table' then
    if not string.find(value.err, 'WRONGTYPE', 1, true) then
      -- This call raises the error, so that the client repeats the release.
      redis.call('GET', lock)
    end
    -- The key is a set of holders, or has another type.
    removed = redis.pcall('ZREM', lock, token)
  elseif value and string.sub(value, 1, TOKEN_LEN) == token and ENDINGS[string.sub(value, TOKEN_LEN + 1)] then
    removed = redis.call('DEL', lock)
  end
  is_ours = is_ours and removed == 1
end
return {is_ours and 1 or -1}
