-- The start of the scripts that take several keys, if none of the keys has a waiter. Each key is free, or is held only for something below
-- it and wanted by this token for something below it as well.
--
-- Returns {1} as in share_try.lua or {1, 0} as in acquire.lua, depending on `place`, the position of the number.
--
-- Renewals and releases need these commands. A user without them is refused by the rest of the script, before anything is written.
local clock, lefts, leasts = redis.pcall('TIME'), {}, {}
local is_free = not clock.err and type(redis.pcall('ZSCORE', KEYS[1], token)) ~= 'table'
for at = 1, is_free and #wanted or 0 do
  local name, as = KEYS[2 * at - 1], string.sub(wanted, at, at)
  local count = redis.pcall('ZCARD', name)
  -- The rest of the script handles a slot that moves.
  if KEYS[2] == KEYS[1] or redis.pcall('ZCOUNT', KEYS[2 * at], '-inf', '+inf') ~= 0 or type(count) ~= 'number' then
    is_free = false
  elseif count > 0 then
    -- The compatible classes are adjacent. A set without an expiry belongs to another program.
    local least = as == '2' and 2 or as == '3' and 1
    leasts[at], lefts[at] = least, least and redis.call('PTTL', name)
    is_free = least and redis.pcall('ZCOUNT', name, least * SHARE, '(' .. 4 * SHARE) == count and lefts[at] >= 0
      and not redis.call('ZSCORE', name, token)
  end
  if not is_free then
    break
  end
end
if is_free then
  local now, ttl = clock[1] * 1000 + math.floor(clock[2] / 1000), ARGV[2] + 0
  -- A full server refuses the first of these commands, and nothing is changed.
  for at = 1, #wanted do
    local name, as = KEYS[2 * at - 1], tonumber(string.sub(wanted, at, at))
    if as == ALONE then
      redis.call('SET', name, token, 'PX', ARGV[2])
    elseif not lefts[at] then
      -- The only holder, as in share_alone.lua.
      redis.call('SET', name, token .. LETTER_OF[string.sub(wanted, at, at)], 'PX', ARGV[2])
    else
      redis.call('ZADD', name, string.format('%.0f', as * SHARE + now + ttl), token)
      if lefts[at] < ttl and type(redis.pcall('PEXPIRE', name, ARGV[2])) == 'table' then
        -- A member that never expires would stay. The second call raises the error.
        redis.pcall('ZREM', name, token)
        redis.call('PEXPIRE', name, ARGV[2])
      end
      -- Removes expired members. Every user may run these commands, so that the script cannot fail halfway.
      for class = leasts[at], 3 do
        local from, to = string.format('%.0f', class * SHARE), string.format('%.0f', class * SHARE + now)
        local ended = redis.call('ZRANGE', name, from, to, 'BYSCORE', 'LIMIT', 0, MOST_ENDED)
        if ended[1] then
          redis.call('ZREM', name, unpack(ended))
        end
      end
    end
  end
  return place == 2 and {1} or {1, 0}
end
