-- The part of the scripts that look who has come last.

-- The largest token in the queue, nil when it is empty or cannot be read; whether anybody in it shares the lock, wants
-- several names, or has asked for one that somebody shares: those stand behind the others; and a table of the scores that there
-- may be in it.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  if not last or class == 'ALONE' then
    return last, false, {[ALONE] = last}
  end
  local largest, line, lines = nil, LAST_LINE, {[UNTOLD] = true}
  while line >= ALONE do
    local last, found = unpack(redis.pcall('ZRANGE', queue, line, 'ALONE', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES'))
    -- Something else may have the name, and other scores.
    line = tonumber(found or -1)
    if last and line % 1 == 0 then
      lines[line] = true
      if not largest or is_before(largest, last) then
        largest = last
      end
    end
    line = math.ceil(line) - 1
  end
  return largest, true, lines
end
