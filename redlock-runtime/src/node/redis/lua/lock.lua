-- The part that every script uses to read the state: the holder, the waiters, and the newest token.

-- The mark follows the token of a holder while others may wait for its lock. A holder that finds its token without the mark need not read
-- the queue. An uncontended release is therefore only a comparison and a deletion. The mark is missing despite waiters in one case: the key
-- had vanished without a hand-off, and a plain SET has taken it. The waiters ask again after a while, and acquire.lua then sets the mark.

-- Returns the token of the holder, or the value that another program has written. Returns false if the lock is free, and true for a key of
-- another type, which is treated as taken. The second result is true if the token has the mark.
local function find_holder()
  if type(value) == 'string' and #value == TOKEN_LEN + 1 and string.sub(value, -1) == MARK then
    return string.sub(value, 1, TOKEN_LEN), true
  elseif type(value) ~= 'table' then
    return value
  elseif string.find(value.err, 'WRONGTYPE', 1, true) then
    return true
  end
  -- Any other error ends the script: this call raises it.
  return redis.call('GET', lock)
end

-- Returns the time in the larger one of the holder and the last token in the queue. Returns nothing if the calling token is larger than
-- both. The caller moves its clock ahead of this time.
local function newest(holder, last)
  local largest = token
  if is_token(holder) and is_before(largest, holder) then
    largest = holder
  end
  if last and is_before(largest, last) then
    largest = last
  end
  if largest ~= token then
    return string.sub(largest, 1, TIME_LEN)
  end
end
