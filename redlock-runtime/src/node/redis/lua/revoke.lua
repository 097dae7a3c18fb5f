-- Replaces the token of a holder whose lock is broken, and notifies this holder. The key expires when it would have: the previous holder
-- may rely on the lock until its lease ends.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the token whose lock is broken
--
-- - `{left, told}`: the token has the place of the holder for `left` ms; `told` processes have received the notification
-- - `{-1}`: neither of the tokens holds the lock, or the key does not expire
local from = ARGV[2]
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE', 1, true) then
    -- This call raises the error.
    redis.call('GET', lock)
  end
  -- A value of another type is not a lock, except the set of readers: this token then takes the place of one reader.
  local clock = redis.call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  -- Returns the score of a token in the set, and its remaining lease.
  local function hold_of(who)
    local ends = redis.pcall('ZSCORE', lock, who)
    local left = type(ends) == 'string' and ends % SHARE - now or 0
    return left > 0 and ends + 0 < RESERVING * SHARE and ends, left
  end
  local ends, rest = false, 0
  if is_token(from) then
    ends, rest = hold_of(from)
  end
  if not ends then
    ends, rest = hold_of(token)
  end
  if not ends or redis.call('PTTL', lock) < 0 then
    return {-1}
  end
  -- The first two commands change nothing: a user without one of these commands is refused before anything is changed, and a full server
  -- does not let a script begin with a ZADD. The new member comes first, as the key would vanish with its last member, and lose its expiry.
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), 1))
  redis.call('ZREM', lock, '')
  redis.call('ZADD', lock, ends, token)
  redis.call('ZREM', lock, from ~= token and from or '')
  local said = 'revoked ' .. from .. ' ' .. token .. ' ' .. lock
  return {rest, notify(from, said)}
end
-- The token, without the mark or the letter behind it.
local holder = value and ENDINGS[string.sub(value, TOKEN_LEN + 1)] and string.sub(value, 1, TOKEN_LEN)
local is_theirs = is_token(from) and holder == from
if not is_theirs and holder ~= token then
  return {-1}
end
local left = redis.call('PTTL', lock)
if left < 0 then
  return {-1}
elseif is_theirs then
  -- An expiry must be positive, and PTTL rounds down. The expiry is set first, because a full server does not let a script begin with a
  -- SET.
  left = math.max(left, 1)
  redis.call('PEXPIRE', lock, left)
  redis.call('SET', lock, token .. string.sub(value, TOKEN_LEN + 1), 'PX', left)
end
local said = 'revoked ' .. from .. ' ' .. token .. ' ' .. lock
return {left, notify(from, said)}
