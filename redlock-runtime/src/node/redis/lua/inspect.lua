-- Looks at a lock and its queue, and changes nothing. It is no part of the protocol, and not loaded beforehand.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] how much of a value to show, in bytes   ARGV[2] how many tokens to name
-- ARGV[3] the score of a share that would have ended in 1970
-- {value, pttl, waiting, waiters, sharing, readers}
-- The value is nil when there is none, 1 when it is a sorted set, and 0 when it is of another type. `waiters` are the tokens that
-- wait to have the lock alone, `sharing` those that wait to share it, and `readers` those that do. The number of those who wait
-- is -1 when the queue cannot be read, because something else has its name or the user may not.
-- The value stays short whatever it is, because data may have the name of a lock, and be of any length.
local value, set = redis.pcall('GET', KEYS[1]), nil
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
  set = {}
  for class = 1, 3 do
    local some = redis.pcall('ZRANGE', KEYS[1], score(class, now), score(class + 1, 0), 'BYSCORE', 'LIMIT', 0, ARGV[2])
    if some.err then
      set = some
      break
    end
    for _, member in ipairs(some) do
      set[#set + 1] = member
    end
  end
  value = set.err and 0 or 1
end
local pttl = redis.call('PTTL', KEYS[1])

-- Those of the queue that wait with these scores.
local function of_lines(...)
  local all = {}
  for _, line in ipairs({...}) do
    local some = redis.pcall('ZRANGE', KEYS[2], line, line, 'BYSCORE', 'LIMIT', 0, ARGV[2])
    if some.err then
      return some
    end
    for _, member in ipairs(some) do
      all[#all + 1] = member
    end
  end
  return all
end
-- Alone or for several names, as readers.lua says.
local waiters, sharing, waiting = of_lines(0, 2, 4), of_lines(1, 3, 5), -1
if waiters.err or sharing.err then
  waiters, sharing = {}, {}
elseif #sharing == 0 and redis.call('ZCARD', KEYS[2]) == #waiters then
  waiting = #waiters
else
  -- Beside some of the tokens stands when they were heard of.
  waiting = redis.pcall('ZCOUNT', KEYS[2], 0, 5)
  waiting = type(waiting) == 'number' and waiting or #waiters + #sharing
end

-- A set that others have written may have members of any length, which are no tokens.
local function tokens(members)
  local short = {}
  for _, member in ipairs(members) do
    if #member <= ARGV[1] + 0 then
      short[#short + 1] = member
    end
  end
  return short
end
value = type(value) == 'string' and string.sub(value, 1, ARGV[1]) or value
return {value, pttl, waiting, tokens(waiters), tokens(sharing), tokens(set and set.err == nil and set or {})}
