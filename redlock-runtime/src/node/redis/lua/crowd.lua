-- The part that finds out if the lock is shared, or if a waiter wants to share it or wants several keys. If so, the script continues in
-- readers.lua. `last` is the largest token in the queue, nil if the queue is empty or cannot be read. Among readers, `last` may be a member
-- that is not a token.
local last, last_class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
local is_among = last and last_class ~= 'ALONE'
if type(value) == 'table' then
  -- Scores of other programs are not times after SHARE, see shares.lua.
  local score = tonumber(redis.pcall('ZRANGE', lock, 0, 0, 'WITHSCORES')[2])
  if score and score >= SHARE and score < (RESERVING + 1) * SHARE then
    value, is_among = false, true
  end
elseif value and LETTERS[string.sub(value, TOKEN_LEN + 1)] then
  is_among = true
end
