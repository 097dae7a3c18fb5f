-- The start of release.lua for several keys, if the token holds all of them and none has a waiter.
local is_ours, now, ends, alone = true, nil, {}, {}
for at = 1, #wanted do
  local name = KEYS[2 * at - 1]
  local as = string.sub(wanted, at, at)
  if redis.pcall('GET', name) == (as == 'ALONE' and token or token .. LETTER_OF[as]) then
    -- Without a mark, the key has no waiter. The single holder of another class has none either.
    alone[#alone + 1] = name
  elseif as == 'ALONE' then
    is_ours = false
  elseif redis.pcall('ZCARD', KEYS[2 * at]) ~= 0 then
    is_ours = false
  else
    local clock = not now and redis.pcall('TIME')
    now = now or clock[2] and clock[1] * 1000 + math.floor(clock[2] / 1000)
    local score = redis.pcall('ZSCORE', name, token)
    local as = type(score) == 'string' and math.floor(score / SHARE) or 0
    ends[at] = as > 0 and score - as * SHARE
    is_ours = as > 0 and as < RESERVING and now and ends[at] > now
  end
  if not is_ours then
    break
  end
end
if is_ours then
  if alone[1] then
    redis.call('DEL', unpack(alone))
  end
  for at = 1, #wanted do
    local name = KEYS[2 * at - 1]
    if ends[at] then
      redis.call('ZREM', name, token)
      -- The key expires with the last remaining member of any class.
      local last, below = nil, '+inf'
      repeat
        local score = redis.call('ZRANGE', name, below, '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES')[2]
        if score then
          local as = math.floor(score / SHARE)
          last, below = math.max(last or 0, score - as * SHARE), string.format('(%.0f', as * SHARE)
        end
      until not score
      if last then
        redis.call('PEXPIRE', name, last - now)
      end
    end
  end
  return {1}
end
