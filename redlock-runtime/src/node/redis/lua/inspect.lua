-- Looks at a lock and its queue, and changes nothing. It is no part of the protocol, and not loaded beforehand.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] how much of a value to show, in bytes   ARGV[2] how many tokens to name
-- ARGV[3] the score of a share that would have ended in 1970
-- {value, pttl, waiting, waiters, holders}
-- The value is nil when there is none, 1 when it is a sorted set, and 0 when it is of another type. `waiters` are the tokens that
-- wait, and `holders` those that have the lock together: a list for each class, as readers.lua says. The number of those who wait
-- is -1 when the queue cannot be read, because something else has its name or the user may not.
-- The value stays short whatever it is, because data may have the name of a lock, and be of any length.
local value, set = redis.pcall('GET', KEYS[1]), {{}, {}, {}, {}}
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE', 1, true) then
    return value
  end
  -- A user who may not ask for the time sees also those whose shares are over.
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

-- By their classes: some stand in two lines of the queue.
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
  -- Beside some of the tokens stands when they were heard of.
  local counted = redis.pcall('ZCOUNT', KEYS[2], 0, 5)
  waiting = type(counted) == 'number' and counted or waiting
end

-- A set that others have written may have members of any length, which are no tokens.
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
