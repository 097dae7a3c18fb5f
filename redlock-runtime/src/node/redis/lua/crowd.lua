-- The part that finds out whether somebody shares the lock, or waits to share it or for several names. Then a script goes on as readers.lua says.
-- `last` is the largest token in the queue, nil when it is empty or cannot be read; among readers it may be something else.
local last, last_class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
local is_among = last and last_class ~= 'ALONE'
if type(value) == 'table' then
  -- Scores of other programs are no times behind SHARE, as in shares.lua.
  local score = tonumber(redis.pcall('ZRANGE', lock, 0, 0, 'WITHSCORES')[2])
  if score and score >= SHARE and score < (RESERVING + 1) * SHARE then
    value, is_among = false, true
  end
end
