-- The part of the scripts that look who has come last.

-- The largest token in the queue, nil when it is empty or cannot be read; and whether anybody in it shares the lock, wants
-- several names, or has asked for one that somebody shares: those stand behind the others.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
  if not last or class == 'ALONE' then
    return last, false
  end
  local largest
  for line = ALONE, LAST_LINE do
    local last = redis.pcall('ZRANGE', queue, line, line, 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
    if last and (not largest or is_before(largest, last)) then
      largest = last
    end
  end
  return largest, true
end

