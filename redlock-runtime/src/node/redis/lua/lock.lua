-- The part of every script that looks: who holds the lock, who waits, and what is newer than the token that asks.

-- The mark stands behind the token of a holder while others may wait for its lock. A holder that finds its token
-- without the mark need not look at the queue, so that an uncontended release is no more than a comparison and a
-- deletion. In one case others wait and there is no mark: the key had vanished without being handed over, and a plain
-- SET has taken it. Whoever waits asks again after a while, and acquire.lua sets the mark then.

-- The token that has the lock, or whatever another program has put there; false when the lock is free, and true when a
-- key of another type stands there, which counts as taken. The second result is whether the token has the mark.
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

-- The smallest (0) or the largest (-1) token in the queue, nil when it is empty. A queue that cannot be read, because
-- something else has its name or the user may not, counts as empty: a lock must be released all the same.
local function waiter(at)
  return redis.pcall('ZRANGE', queue, at, at)[1]
end

-- The time in the larger one of the holder and the last in the queue, when that is larger than the token that asks:
-- whoever asks moves its clock ahead of it.
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
