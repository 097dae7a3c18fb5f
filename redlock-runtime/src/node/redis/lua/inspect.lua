-- Reads a lock and its queue without changing them. It is not part of the protocol, and not loaded in advance.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the maximum number of bytes of a value in the reply   ARGV[2] the maximum number of tokens
-- in the reply
-- ARGV[3] the score of a share that would have ended in 1970
--
-- {value, pttl, waiting, waiters, holders}
--
-- The value is nil if there is none, 1 for a sorted set, and 0 for any other type. `waiters` are the waiting tokens, and `holders` the
-- tokens that share the lock: one list for each class of readers.lua. `waiting` is the number of waiters. It is -1 if the queue cannot be
-- read, because another program uses its key or the user lacks the permission. Values are cut to a maximum length, because the key of a
-- lock may contain data of any length.
local value, set = redis.pcall('GET', KEYS[1]), {{}, {}, {}, {}}
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE', 1, true) then
    return value
  end
  -- For a user who may not run TIME, the reply contains expired shares, too.
  local clock = redis.pcall('TIME')
  local now = clock[2] and clock[1] * 1000 + math.floor(clock[2] / 1000) or 0
  local function score(class, at)
    return '(' .. string.format('%.0f', class * ARGV[3] + at)
  end
  value = 1
  for class = 1, 3 do
    local some = redis.pcall('ZRANGE', KEYS[1], score(class, now), score(class + 1, 0), 'BYSCORE', 'LIMIT', 0, ARGV[2])
    value = some.err and 0 or value
    set[class + 1] = some.err and {} or some
  end
end
local pttl = redis.call('PTTL', KEYS[1])

-- Grouped by class: some classes have two scores in the queue.
local waiters, waiting = {{}, {}, {}, {}}, 0
for line = 0, 5 do
  local class = waiters[line % 4 + 1]
  local some = redis.pcall('ZRANGE', KEYS[2], line, line, 'BYSCORE', 'LIMIT', 0, ARGV[2])
  waiting = not some.err and waiting >= 0 and waiting + #some or -1
  for _, member in ipairs(some) do
    class[#class + 1] = member
  end
end
if waiting >= 0 and redis.call('ZCARD', KEYS[2]) ~= waiting then
  -- The queue also has members that record when a token last asked.
  local counted = redis.pcall('ZCOUNT', KEYS[2], 0, 5)
  waiting = type(counted) == 'number' and counted or waiting
end

-- A set of another program may have members of any length that are not tokens.
local function tokens(classes)
  for class, members in ipairs(classes) do
    local short = {}
    for _, member in ipairs(members) do
      if #member <= ARGV[1] + 0 then
        short[#short + 1] = member
      end
    end
    classes[class] = short
  end
  return classes
end
value = type(value) == 'string' and string.sub(value, 1, ARGV[1]) or value
return {value, pttl, waiting, tokens(waiters), tokens(set)}
