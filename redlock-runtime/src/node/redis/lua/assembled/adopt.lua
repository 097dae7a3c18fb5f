-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
-- The part that reads the lock: false when it is free, a table when it cannot be read.
local value = redis.pcall('GET', lock)
-- The part of an extension that may arrive after commands which were sent after it. One of these commands may have set a longer lease, and
-- the client relies on that lease. The lease therefore never becomes shorter.
--
-- ARGV[2] the ttl in ms   ARGV[3], or ARGV[4] of adopt.lua: 'late' if the command arrives after later ones
if ARGV[3] == 'late' or ARGV[4] == 'late' then
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'number' and left > tonumber(ARGV[2]) then
    ARGV[2] = left
  end
end
-- The start of extend.lua, for a lock that another token left behind: this token takes its place.
--
-- ARGV[3] the token that the lock was left with
--
-- If the lock could not be read, `value` is a table and equals no text: the script continues, and lock.lua handles the error. A mark after
-- the other token stays after this one, because the same tokens wait.
if value == ARGV[3] or value == ARGV[3] .. '+' then
  value = token .. string.sub(value, 60 + 1)
  -- A server that is full does not let a script begin with a SET.
  redis.call('PEXPIRE', lock, ARGV[2])
  redis.call('SET', lock, value, 'PX', ARGV[2])
end
-- The start of extend.lua, for a lock without waiters. If the lock could not be read, `value` is a table and equals no token: the script
-- continues, and lock.lua handles the error.
if value == token then
  redis.call('PEXPIRE', lock, ARGV[2])
  return {0, '@' .. table.concat(redis.pcall('TIME'), '.')}
end
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

-- The part of the scripts that finds the token that came last.

-- Returns three values. First, the largest token in the queue, nil if the queue is empty or cannot be read. Second, true if a member of the
-- queue shares the lock, wants several keys, or has asked for a key that is shared: such members have a score above 0. Third, a table
-- of the scores that may occur in the queue.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  if not last or class == '0' then
    return last, false, {[0] = last}
  end
  local largest, line, lines = nil, 5, {[8796093022208] = true}
  while line >= 0 do
    local last, found = unpack(redis.pcall('ZRANGE', queue, line, '0', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES'))
    -- Another program may use the key, with other scores.
    line = tonumber(found or -1)
    if last and line % 1 == 0 then
      lines[line] = true
      if not largest or is_before(largest, last) then
        largest = last
      end
    end
    line = math.ceil(line) - 1
  end
  return largest, true, lines
end
-- The middle of extend.lua, for a lock with waiters. It comes before the functions of the other parts, see release_marked.lua.
if value == token .. '+' then
  redis.call('PEXPIRE', lock, ARGV[2])
  local last, is_among = latest()
  local newest = last and is_before(token, last) and string.sub(last, 1, 18) or nil
  local waiting = is_among and redis.pcall('ZCOUNT', queue, 0, 5)
  if type(waiting) ~= 'number' then
    -- If the user may not use shared locks, the entries beside the tokens are counted, too.
    waiting = last and redis.call('ZCARD', queue)
  end
  return {waiting or 0, '@' .. table.concat(redis.pcall('TIME'), '.'), newest}
end
-- The part that every script uses to read the state: the holder, the waiters, and the newest token.

-- The mark follows the token of a holder while others may wait for its lock. A holder that finds its token without the mark need not read
-- the queue. An uncontended release is therefore only a comparison and a deletion. The mark is missing despite waiters in one case: the key
-- had vanished without a hand-off, and a plain SET has taken it. The waiters ask again after a while, and acquire.lua then sets the mark.

-- Returns the token of the holder, or the value that another program has written. Returns false if the lock is free, and true for a key of
-- another type, which is treated as taken. The second result is true if the token has the mark.
local function find_holder()
  if type(value) == 'string' and #value == 60 + 1 and string.sub(value, -1) == '+' then
    return string.sub(value, 1, 60), true
  elseif type(value) ~= 'table' then
    return value
  elseif string.find(value.err, 'WRONGTYPE', 1, true) then
    return true
  end
  -- Any other error ends the script: this call raises it.
  return redis.call('GET', lock)
end

-- Returns the smallest (0) or the largest (-1) token in the queue, nil if the queue is empty. A queue that cannot be read is treated as
-- empty: another program uses its key, or the user lacks the permission. A release must succeed even then.
local function waiter(at)
  return redis.pcall('ZRANGE', queue, at, at)[1]
end

-- Returns the time in the larger one of the holder and the last token in the queue. Returns nothing if the calling token is larger than
-- both. The caller moves its clock ahead of this time.
local function newest(holder, last)
  local largest = token
  if is_token(holder) and is_before(largest, holder) then
    largest = holder
  end
  if last and is_before(largest, last) then
    largest = last
  end
  if largest ~= token then
    return string.sub(largest, 1, 18)
  end
end
-- Restarts a lease; never creates a lock.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl in ms
--
-- - `{n}`: extended, and n tokens wait
-- - `{-1}`: the token does not hold the lock
--
-- Every reply ends with the time of the server as `@seconds.microseconds`, only `@` for a user who may not run TIME. The time of the newest
-- token follows, if it is newer than this one.
local holder, is_marked = find_holder()
local last, is_among
if is_marked or holder ~= token then
  last, is_among = latest()
end
local time = '@' .. table.concat(redis.pcall('TIME'), '.')
if holder ~= token then
  return {-1, time, newest(holder, last)}
end
redis.call('PEXPIRE', lock, ARGV[2])
local waiting = 0
if last then
  waiting = is_among and redis.pcall('ZCOUNT', queue, 0, 5)
  -- If the user may not use shared locks, the entries beside the tokens are counted, too.
  waiting = type(waiting) == 'number' and waiting or redis.call('ZCARD', queue)
end
return {waiting, time, newest(holder, last)}
