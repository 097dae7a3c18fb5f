-- Writes the settings of a process to the data of a server, and returns those of other processes of the last minute.
--
-- KEYS[1]: the settings, a sorted set of texts. The score is the time in milliseconds since 1970 at which a process last wrote the text.
-- ARGV:
-- - the settings of this process;
-- - its previous settings, if they were different;
-- - the lifetime of a text in milliseconds;
-- - the maximum number of texts;
-- - the maximum number of bytes of a text in the reply.
--
-- Returns nothing if the user may not run TIME.

local time = redis.pcall('TIME')
if time.err then
  return {}
end
local now, most = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[4])
local latest, oldest = string.format('%.0f', now), string.format('%.0f', now - ARGV[3])

-- A text is old, or newer than now: then the clock was set back, or another program wrote the text.
for _, range in ipairs({{'-inf', oldest}, {'(' .. latest, '+inf'}}) do
  for _, text in ipairs(redis.call('ZRANGE', KEYS[1], range[1], range[2], 'BYSCORE', 'LIMIT', 0, most)) do
    redis.call('ZREM', KEYS[1], text)
  end
end
redis.call('ZREM', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[1], latest, ARGV[1])
local excess = redis.call('ZCARD', KEYS[1]) - most
if excess > 0 then
  redis.call('ZPOPMIN', KEYS[1], math.min(excess, most))
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])

local others = {}
for _, text in ipairs(redis.call('ZRANGE', KEYS[1], latest, '(' .. oldest, 'BYSCORE', 'REV', 'LIMIT', 0, most)) do
  if text ~= ARGV[1] then
    others[#others + 1] = string.sub(text, 1, tonumber(ARGV[5]))
  end
end
return others
