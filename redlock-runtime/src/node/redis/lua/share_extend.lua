-- Starts the lease of a share anew, or that of several names; never creates one. What the token has alone, and wants to share, is
-- shared from now on.
-- KEYS[1] the lock   KEYS[2] its queue   and so on   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
-- ARGV[4] the token that the share was left with, whose place this one takes; empty for none
-- ARGV[5] 'late', if it stands behind commands that were sent after it: then it makes no lease shorter, as in late.lua
-- {n}    extended, and n tokens wait that do not go with it
-- {-1}   the token has no share, or not all of the names
-- and at the end the time of the server as `@seconds.microseconds`; then the time of the newest token, if it is newer
local from = ARGV[4]
-- Whether a token has as much of the name as is wanted.
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
    -- Something else may have the name of the queue, which counts as empty then.
    local some = redis.pcall('ZCOUNT', queue, line, line)
    count = count + (type(some) == 'number' and some or 0)
  end
  waiters = math.max(waiters, count)
end)
return {waiters, time, seen()}
