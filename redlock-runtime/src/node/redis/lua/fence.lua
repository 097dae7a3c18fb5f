-- The part of the scripts that draw a fencing number: a counter for each lock, and the largest number of the node.
-- KEYS[3] the counter: whom its number was drawn by, a space, the number   KEYS[4] the largest number
-- ARGV[#ARGV - 1] and ARGV[#ARGV]: `draw` and the number above which to draw, or `raise` and the number to raise to

-- The number that a text consists of; nil for anything else, however much it is a number to Lua: a value that others have
-- put there would raise the numbers of all locks to the last one that there is.
local function number_in(text)
  local number = string.find(text, '^%d+$') and tonumber(text)
  return number and number < NUMBERS_END and number or nil
end

-- The number of the token that asks, which must own the lock; -1 when it gets none. That is not an error, whatever the
-- reason, because an error would hide what the script has done to the lock. Numbers stay far below 2^53, up to which
-- Lua's are exact.
local function fence()
  -- The part before the `@` is enough to tell who has drawn a number, since it is unique by itself.
  local by, wanted = string.sub(token, 1, ATTEMPT_LEN), tonumber(ARGV[#ARGV])
  local read = redis.pcall('MGET', KEYS[3], KEYS[4])
  -- A counter that has expired starts again above every number that the node has given to anybody.
  local drawn, most = read[1], number_in(read[2] or '0')
  local number, is_ours = most, false
  if drawn then
    local is_counter = string.find(drawn, '^[%x-]+ %d+$') == 1 and string.sub(drawn, ATTEMPT_LEN + 1, ATTEMPT_LEN + 1) == ' '
    number = is_counter and number_in(string.sub(drawn, ATTEMPT_LEN + 2))
    is_ours = string.sub(drawn, 1, ATTEMPT_LEN) == by
  end
  -- The counters cannot be read, or something else has one of their names.
  if read.err or not number or not most then
    return -1
  end
  if ARGV[#ARGV - 1] == 'draw' then
    -- Once for each token: neither a renewal nor a command that is sent again draws another.
    number = is_ours and number or math.max(number, wanted) + 1
  elseif is_ours or number < wanted then
    number = math.max(number, wanted)
  else
    return -1
  end
  local text = string.format('%.0f', number)
  -- With GET, SET refuses a key of another type, which it would overwrite otherwise.
  local stored = redis.pcall('SET', KEYS[3], by .. ' ' .. text, 'PX', COUNTER_EXPIRY, 'GET')
  -- A raised number counts as well: otherwise the counter of this lock, once it has expired, would start below it.
  if type(stored) ~= 'table' and number > most then
    stored = redis.pcall('SET', KEYS[4], text, 'GET')
  end
  return type(stored) == 'table' and -1 or number
end

