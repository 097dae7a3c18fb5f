-- Writes a value, unless a later owner of the lock has written before.
-- KEYS[1] the value   KEYS[2] the largest fencing token that was seen   ARGV[1] the token of the writer
-- ARGV[2] the value to write   ARGV[3], .. options of SET, such as PX and a number of milliseconds
-- 1   written
-- 0   refused: the token is older than the largest one
local token, largest = ARGV[1], redis.call('GET', KEYS[2])
if not string.find(token, '^[1-9]%d*$') then
  return redis.error_reply('ERR a fencing token is a positive decimal number')
end

-- Numbers of 64 bits do not fit into one of Lua's, but halves of their digits do.
local function is_before(a, b)
  if #a ~= #b then
    return #a < #b
  end
  local high_a, high_b = tonumber(string.sub(a, 1, -10)) or 0, tonumber(string.sub(b, 1, -10)) or 0
  if high_a ~= high_b then
    return high_a < high_b
  end
  return tonumber(string.sub(a, -9)) < tonumber(string.sub(b, -9))
end

if largest and is_before(token, largest) then
  return 0
end
-- First: if the value cannot be written, older writers are refused all the same.
redis.call('SET', KEYS[2], token)
redis.call('SET', KEYS[1], unpack(ARGV, 2))
return 1
