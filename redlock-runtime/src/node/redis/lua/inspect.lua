-- Looks at a lock and its queue, and changes nothing. It is no part of the protocol, and not loaded beforehand.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] how much of a value to show, in bytes   ARGV[2] how many waiters to name
-- {value, pttl, waiting, waiters}
-- The value is nil when there is none, and 0 when it is of another type than text. The number of those who wait is -1 when
-- the queue cannot be read, because something else has its name or the user may not.
-- The value stays short whatever it is, because data may have the name of a lock, and be of any length.
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE', 1, true) then
    return value
  end
  value = 0
end
local pttl = redis.call('PTTL', KEYS[1])
local waiting = redis.pcall('ZCARD', KEYS[2])
local waiters = redis.pcall('ZRANGE', KEYS[2], 0, ARGV[2] - 1)
if type(waiting) == 'table' or waiters.err then
  waiting, waiters = -1, {}
end
-- A queue that others have written may have members of any length, which are no tokens.
local tokens = {}
for _, waiter in ipairs(waiters) do
  if #waiter <= ARGV[1] + 0 then
    tokens[#tokens + 1] = waiter
  end
end
return {type(value) == 'string' and string.sub(value, 1, ARGV[1]) or value, pttl, waiting, tokens}
