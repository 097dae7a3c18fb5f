-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
-- The part of the scripts that take a ballot in: a register for each slot, the largest ballot that the node has accepted for
-- the locks there.
-- A register is a sorted set with one member, whose score is the ballot.

-- The ballot when it is larger than all before, which is accepted; otherwise the one before, as a negative number. 0 when the
-- register cannot be used, because something else has its name or the user may not: that is not an error, because an error would
-- hide what the script has done to the lock. Ballots stay far below 2^53, up to which Lua's numbers are exact.
local function fence(register, ballot)
  -- A ballot of zero only looks, and must not make a register.
  local accepted = ballot == '0' and redis.pcall('ZADD', register, 'XX', 'GT', 'CH', ballot, 'n')
    or redis.pcall('ZADD', register, 'GT', 'CH', ballot, 'n')
  if accepted == 1 then
    return tonumber(ballot)
  end
  local largest = redis.pcall('ZSCORE', register, 'n')
  return type(largest) == 'string' and -tonumber(largest) or 0
end

local answer = (function()
-- The part that reads the lock: false when it is free, a table when it cannot be read.
local value = redis.pcall('GET', lock)
-- The part of an extension that may stand behind commands which were sent after it. One of them may have made the lease longer
-- than this one would, and a client counts on that: so the lease gets no shorter.
-- ARGV[2] the ttl in ms   ARGV[3], or ARGV[4] of adopt.lua: 'late', if it does stand behind others
if ARGV[3] == 'late' or ARGV[4] == 'late' then
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'number' and left > tonumber(ARGV[2]) then
    ARGV[2] = left
  end
end
-- The start of extend.lua, for a lock that another token was left with: this one takes its place.
-- ARGV[3] the token that the lock was left with
-- When the lock could not be read, `value` is a table and equals no text: the script goes on, and lock.lua decides what
-- the error means. A mark behind the other token stays behind this one, because the same tokens wait.
if value == ARGV[3] or value == ARGV[3] .. '+' then
  value = token .. string.sub(value, 60 + 1)
  -- A server that is full does not let a script begin with a SET.
  redis.call('PEXPIRE', lock, ARGV[2])
  redis.call('SET', lock, value, 'PX', ARGV[2])
end
-- The part of the scripts that tells tokens from other texts, and which one of two comes first.

-- What the names of channels begin with.
local channels = 'redlock::'

-- Whether a value is a token. Those of other programs hold no time and name no channel, and must not be changed.
local function is_token(value)
  return type(value) == 'string' and #value == 60
    and string.find(value, '^%x+%-%x%x%x%x%-7%x%x%x%-%x%x%x%x%-%x+@%x+$') ~= nil
    and string.sub(value, 36 + 1, 36 + 1) == '@'
end

-- Whether token a is smaller than token b, byte by byte. Lua's `<` follows the locale of the server, and in some
-- locales `aa` comes after `b`.
local function is_before(a, b)
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return false
end

-- The part of the scripts that look who has come last.

-- The largest token in the queue, nil when it is empty or cannot be read; whether anybody in it shares the lock, wants
-- several names, or has asked for one that somebody shares: those stand behind the others; and a table of the scores that there
-- may be in it.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  if not last or class == '0' then
    return last, false, {[0] = last}
  end
  local largest, line, lines = nil, 5, {[8796093022208] = true}
  while line >= 0 do
    local last, found = unpack(redis.pcall('ZRANGE', queue, line, '0', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES'))
    -- Something else may have the name, and other scores.
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
-- The part of every script that looks: who holds the lock, who waits, and what is newer than the token that asks.

-- The mark stands behind the token of a holder while others may wait for its lock. A holder that finds its token
-- without the mark need not look at the queue, so that an uncontended release is no more than a comparison and a
-- deletion. In one case others wait and there is no mark: the key had vanished without being handed over, and a plain
-- SET has taken it. Whoever waits asks again after a while, and acquire.lua sets the mark then.

-- The token that has the lock, or whatever another program has put there; false when the lock is free, and true when a
-- key of another type stands there, which counts as taken. The second result is whether the token has the mark.
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

-- The smallest (0) or the largest (-1) token in the queue, nil when it is empty. A queue that cannot be read, because
-- something else has its name or the user may not, counts as empty: a lock must be released all the same.
local function waiter(at)
  return redis.pcall('ZRANGE', queue, at, at)[1]
end

-- The time in the larger one of the holder and the last in the queue, when that is larger than the token that asks:
-- whoever asks moves its clock ahead of it.
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
-- Starts a lease anew; never creates a lock.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl in ms
-- {n}    extended, and n tokens wait
-- {-1}   the token does not own the lock
-- and at the end the time of the server as `@seconds.microseconds`, only `@` for a user who may not ask for it; then the
-- time of the newest token, if it is newer than this one
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
  -- Of a user who may not share locks, what stands beside the tokens is counted, too.
  waiting = type(waiting) == 'number' and waiting or redis.call('ZCARD', queue)
end
return {waiting, time, newest(holder, last)}
end)()
-- The end of extend.lua for fenced locks: what is said to the ballot follows what an extension says.
-- KEYS[3] the register   ARGV[#ARGV] the ballot
-- {n, ballot}   and so on
if answer[1] and answer[1] >= 0 then
  table.insert(answer, 2, fence(KEYS[3], ARGV[#ARGV]))
end
return answer
