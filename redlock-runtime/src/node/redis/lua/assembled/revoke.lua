-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
-- The part that reads the lock: false when it is free, a table when it cannot be read.
local value = redis.pcall('GET', lock)
-- The part of the scripts that recognizes tokens and compares them.

-- Prefix of the names of channels.
local channels = 'redlock::'

-- Returns true if a value is a token. Values of other programs contain neither a time nor a channel, and must not be changed.
local function is_token(value)
  return type(value) == 'string' and #value == 60
    and string.find(value, '^%x+%-%x%x%x%x%-7%x%x%x%-%x%x%x%x%-%x+@%x+$') ~= nil
    and string.sub(value, 36 + 1, 36 + 1) == '@'
end

-- Returns true if token a is smaller than token b, byte by byte. Lua's `<` follows the locale of the server, and in some locales `aa` comes
-- after `b`.
local function is_before(a, b)
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return false
end

-- The part of the scripts that notify other processes.

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 if this user may not publish.
--
-- A client that subscribes to a pattern is one of the receivers. With not 'patterns', these clients are subtracted: they receive an empty
-- text on a channel to which no client subscribes by its name.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local channel = channels .. string.sub(to, 36 + 2)
  local received = redis.pcall('PUBLISH', channel, text)
  if type(received) ~= 'number' then
    return 0
  end
  return not 'patterns' and received - redis.call('PUBLISH', channel .. '-', '') or received
end

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
    local left = type(ends) == 'string' and ends % 4398046511104 - now or 0
    return left > 0 and ends + 0 < 7 * 4398046511104 and ends, left
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
  -- A full server does not let a script begin with a ZADD. And the key vanishes for a moment if the reader was the only member.
  local left = redis.call('PTTL', lock)
  redis.call('ZREM', lock, from)
  redis.call('ZADD', lock, ends, token)
  redis.call('PEXPIRE', lock, left)
  local said = 'revoked ' .. from .. ' ' .. token .. ' ' .. lock
  return {rest, notify(from, said)}
end
local is_theirs = is_token(from) and (value == from or value == from .. '+')
if not is_theirs and value ~= token and value ~= token .. '+' then
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
  redis.call('SET', lock, token .. string.sub(value, 60 + 1), 'PX', left)
end
local said = 'revoked ' .. from .. ' ' .. token .. ' ' .. lock
return {left, notify(from, said)}
