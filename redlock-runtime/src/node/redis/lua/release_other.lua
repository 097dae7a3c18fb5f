-- The middle of release.lua, for a token that does not hold the lock: another token holds it, or it is free and no token waits.
local owner = type(value) == 'string' and string.sub(value, 1, TOKEN_LEN)
local has_other = is_token(owner) and owner ~= token and (value == owner or value == owner .. MARK)
if not is_among and (has_other or not value and not last) then
  if last then
    redis.call('ZREM', queue, token)
  end
  local largest = last and (not owner or is_before(owner, last)) and last or owner
  return {-1, largest and is_before(token, largest) and string.sub(largest, 1, TIME_LEN) or nil}
end
