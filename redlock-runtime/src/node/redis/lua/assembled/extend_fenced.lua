-- Generated: this is what the server gets, put together of the parts in the folder above. To write it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
-- The part of the scripts that draw a fencing number: a counter for each lock, and the largest number of the node.
-- KEYS[3] the counter: whom its number was drawn by, a space, the number   KEYS[4] the largest number
-- ARGV[#ARGV - 1] and ARGV[#ARGV]: `draw` and the number above which to draw, or `raise` and the number to raise to

-- The number that a text consists of; nil for anything else, however much it is a number to Lua: a value that others have
-- put there would raise the numbers of all locks to the last one that there is.
local function number_in(text)
  local number = string.find(text, '^%d+$') and tonumber(text)
  return number and number < 140737488355328 and number or nil
end

-- The number of the token that asks, which must own the lock; -1 when it gets none. That is not an error, whatever the
-- reason, because an error would hide what the script has done to the lock. Numbers stay far below 2^53, up to which
-- Lua's are exact.
local function fence()
  -- The part before the `@` is enough to tell who has drawn a number, since it is unique by itself.
  local by, wanted = string.sub(token, 1, 36), tonumber(ARGV[#ARGV])
  local read = redis.pcall('MGET', KEYS[3], KEYS[4])
  -- A counter that has expired starts again above every number that the node has given to anybody.
  local drawn, most = read[1], number_in(read[2] or '0')
  local number, is_ours = most, false
  if drawn then
    local is_counter = string.find(drawn, '^[%x-]+ %d+$') == 1 and string.sub(drawn, 36 + 1, 36 + 1) == ' '
    number = is_counter and number_in(string.sub(drawn, 36 + 2))
    is_ours = string.sub(drawn, 1, 36) == by
  end
  -- The counters cannot be read, or something else has one of their names.
  if read.err or not number or not most then
    return -1
  end
  if ARGV[#ARGV - 1] == 'draw' then
    -- Once for each token: neither a renewal nor a command that is sent again draws another.
    number = is_ours and number or math.max(number, wanted) + 1
  elseif is_ours or number < wanted then
    number = math.max(number, wanted)
  else
    return -1
  end
  local text = string.format('%.0f', number)
  -- With GET, SET refuses a key of another type, which it would overwrite otherwise.
  local stored = redis.pcall('SET', KEYS[3], by .. ' ' .. text, 'PX', 2678400000, 'GET')
  -- A raised number counts as well: otherwise the counter of this lock, once it has expired, would start below it.
  if type(stored) ~= 'table' and number > most then
    stored = redis.pcall('SET', KEYS[4], text, 'GET')
  end
  return type(stored) == 'table' and -1 or number
end

local answer = (function()
-- The part that reads the lock: false when it is free, a table when it cannot be read.
local value = redis.pcall('GET', lock)
-- The part of the scripts that tells tokens from other texts, and which one of two comes first.

-- Whether a value is a token. Those of other programs hold no time and name no channel, and must not be changed.
local function is_token(value)
  return type(value) == 'string' and #value == 69
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

-- The part of every script that looks: who holds the lock, who waits, and what is newer than the token that asks.

-- The mark stands behind the token of a holder while others may wait for its lock. A holder that finds its token
-- without the mark need not look at the queue, so that an uncontended release is no more than a comparison and a
-- deletion. In one case others wait and there is no mark: the key had vanished without being handed over, and a plain
-- SET has taken it. Whoever waits asks again after a while, and acquire.lua sets the mark then.

-- The token that has the lock, or whatever another program has put there; false when the lock is free, and true when a
-- key of another type stands there, which counts as taken. The second result is whether the token has the mark.
local function find_holder()
  if type(value) == 'string' and #value == 69 + 1 and string.sub(value, -1) == '+' then
    return string.sub(value, 1, 69), true
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
local last = (is_marked or holder ~= token) and waiter(-1)
local time = '@' .. table.concat(redis.pcall('TIME'), '.')
if holder ~= token then
  return {-1, time, newest(holder, last)}
end
redis.call('PEXPIRE', lock, ARGV[2])
return {last and redis.call('ZCARD', queue) or 0, time, newest(holder, last)}
end)()
-- The end of extend.lua for fenced locks: the number follows what an extension says.
-- {n, number}   and so on
if answer[1] >= 0 then
  table.insert(answer, 2, fence())
end
return answer
