-- The start of share_extend.lua for several keys, if the token is the single holder of each of them.
local is_ours = true
for at = 1, #wanted do
  local as = string.sub(wanted, at, at)
  if redis.pcall('GET', KEYS[2 * at - 1]) ~= (as == 'ALONE' and token or token .. LETTER_OF[as]) then
    is_ours = false
    break
  end
end
if is_ours then
  local time = '@' .. table.concat(redis.pcall('TIME'), '.')
  for at = 1, #wanted do
    local name, ttl = KEYS[2 * at - 1], ARGV[2] + 0
    -- A late command makes no lease shorter, as in late.lua.
    redis.call('PEXPIRE', name, ARGV[5] == 'late' and math.max(redis.call('PTTL', name), ttl) or ttl)
  end
  return {0, time}
end
