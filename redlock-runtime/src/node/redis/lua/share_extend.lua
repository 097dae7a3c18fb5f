-- Restarts the lease of a share or of several keys; never creates one. A key that the token holds exclusively, and wants to share, is
-- shared from now on.
--
-- KEYS[1] the lock   KEYS[2] its queue   and so on   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
-- ARGV[4] the token that the share was left with, whose place this one takes; empty for none
-- ARGV[5] 'late' if the command arrives after commands that were sent after it: it then makes no lease shorter, as in late.lua
--
-- - `{n}`: extended, and n conflicting tokens wait
-- - `{-1}`: the token does not hold the share, or not all of the keys
--
-- Every reply ends with the time of the server as `@seconds.microseconds`, and the time of the newest token, if it is newer.
local from = ARGV[4]
-- Returns true if a token holds the key in the wanted class or in one that covers it.
local function has_it(who)
  local held = hold_of(who)
  return held and covers(held, class)
end
if any(function() return not has_it(token) and (from == '' or not has_it(from)) end) then
  return {-1, time, seen()}
end
local waiters = 0
any(function()
  local is_ours, ttl = has_it(token), ARGV[2] + 0
  local freed = hold_of(is_ours and token or from)
  if is_ours and ARGV[5] == 'late' then
    local _, ends = share_of(token)
    ttl = math.max(ttl, ends and ends - now or redis.call('PTTL', lock))
  elseif not is_ours then
    drop(from)
  end
  if owner == token and class == ALONE then
    redis.call('PEXPIRE', lock, ttl)
  else
    take(token, class, ttl)
  end
  if not is_ours or freed ~= class then
    promote(ARGV[3], nil, freed)
  end
end)
any(function()
  local count = 0
  for _, line in ipairs(against[class]) do
    -- Another program may use the key of the queue. The queue is treated as empty then.
    local some = redis.pcall('ZCOUNT', queue, line, line)
    count = count + (type(some) == 'number' and some or 0)
  end
  waiters = math.max(waiters, count)
end)
return {waiters, time, seen()}
