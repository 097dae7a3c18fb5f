-- The part of the scripts that draw a fencing number: a counter for each lock, and the largest number of the node.
-- KEYS[3] the counter: a hash of the number `n` and of whom it was drawn `by`   KEYS[4] the largest number
-- ARGV[#ARGV - 1] and ARGV[#ARGV]: `draw` and the number above which to draw, or `raise` and the number to raise to
local counter, largest = KEYS[3], KEYS[4]
-- Before anything is written: a counter that cannot be read is an error that has changed nothing.
local drawn, most = redis.call('HMGET', counter, 'n', 'by'), tonumber(redis.call('GET', largest)) or 0

-- The number of the token that asks, which must own the lock; -1 when it gets none. Numbers stay far below 2^53.
local function fence()
  -- What comes before the `@` is unique by itself, and short enough for the compact form of a small hash.
  local by, wanted = string.sub(token, 1, 36), tonumber(ARGV[#ARGV])
  -- A counter that has expired starts again above every number that the node has given to anybody.
  local number, is_ours = tonumber(drawn[1]) or most, drawn[2] == by
  if ARGV[#ARGV - 1] == 'draw' then
    -- Once for each token: neither a renewal nor a command that is sent again draws another.
    number = is_ours and number or math.max(number, wanted) + 1
  elseif is_ours or number < wanted then
    number = math.max(number, wanted)
  else
    return -1
  end
  -- 31 days: longer than any ttl. An error must not take back what the script has said about the lock.
  local stored = redis.pcall('HSET', counter, 'n', number, 'by', by)
  if type(stored) == 'table' or type(redis.pcall('PEXPIRE', counter, 2678400000)) == 'table' then
    return -1
  end
  -- Also after a raise. Otherwise the counter of this lock, once expired, would start below it.
  if number > most and redis.pcall('SET', largest, number).err then
    return -1
  end
  return number
end

