-- The part that finds out whether somebody shares the lock, or waits to share it. Then a script goes on as readers.lua says.
-- `last` is the largest token in the queue, nil when it is empty or cannot be read; among readers it may be something else.
local last, last_class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
local is_shared = type(value) == 'table' and type(redis.pcall('ZCARD', lock)) == 'number'
if is_shared then
  value = false
end
