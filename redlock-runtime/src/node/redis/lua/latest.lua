-- The part of the scripts that look who has come last.

-- The largest token in the queue, nil when it is empty or cannot be read; and whether anybody in it shares the lock, or has
-- asked for one that somebody shares: those stand behind the others.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
  if not last or class == 'ALONE' then
    return last, false
  end
  local writer = redis.pcall('ZRANGE', queue, ALONE, ALONE, 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  local reader = redis.pcall('ZRANGE', queue, SHARING, SHARING, 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  if writer and reader then
    return is_before(writer, reader) and reader or writer, true
  end
  return writer or reader, true
end

