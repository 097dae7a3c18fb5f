-- The part of the scripts that finds the token that came last.

-- Returns three values. First, the largest token in the queue, nil if the queue is empty or cannot be read. Second, true if a member of the
-- queue shares the lock, wants several keys, or has asked for a key that is shared: such members have a score above ALONE. Third, a table
-- of the scores that may occur in the queue.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  if not last or class == 'ALONE' then
    return last, false, {[ALONE] = last}
  end
  local largest, line, lines = nil, LAST_LINE, {[UNTOLD] = true}
  while line >= ALONE do
    local last, found = unpack(redis.pcall('ZRANGE', queue, line, 'ALONE', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES'))
    -- Another program may use the key, with other scores.
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
