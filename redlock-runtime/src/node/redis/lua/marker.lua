-- Reads the marker in the data of a server and leaves a receipt of the connection there. Writes a new marker if there is none.
--
-- KEYS[1]: the marker, a text `<id> <born>`. `born` is in milliseconds since 1970, or -1 if it is not known.
-- KEYS[2]: the receipts, a sorted set of managers. The score is the number of the last receipt of the manager.
-- ARGV: the id of a new marker, the manager, the number of its last receipt, the maximum number of receipts.
-- Returns the id, the age in milliseconds (-1 if the user may not run TIME), the number of the new receipt, and 1 if the last receipt was
-- found.

local time = redis.pcall('TIME')
local now = time.err and -1 or time[1] * 1000 + math.floor(time[2] / 1000)

local id, born = string.match(redis.call('GET', KEYS[1]) or '', '^(%x+) (%-?%d+)$')
if not id or born == '-1' then
  id, born = id or ARGV[1], now
  redis.call('SET', KEYS[1], string.format('%s %.0f', id, born))
end

local found = 0
for _, manager in ipairs(redis.call('ZRANGE', KEYS[2], ARGV[3], ARGV[3], 'BYSCORE')) do
  found = manager == ARGV[2] and 1 or found
end

local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2] or 0
redis.call('ZADD', KEYS[2], last + 1, ARGV[2])
if redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[4]) then
  redis.call('ZPOPMIN', KEYS[2])
end
return {id, now < 0 and -1 or math.max(now - born, 0), last + 1, found}
