-- Hands the lock to a smaller token, if one waits, and joins the queue.
--
-- KEYS[1] the lock   KEYS[2] its queue   and so on   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
-- ARGV[3] a token that comes first if it waits, even if it is not the smallest; empty for none
--
-- - `{1}`: kept, with an unchanged expiry
-- - `{0, left}`: another token holds the lock, for `left` ms
-- - `{-1}`: the token does not hold the lock
--
-- Every reply ends with the time of the newest token, if it is newer than this one.
local claim, to = ARGV[2], ARGV[3]
local function has_it()
  local held = hold_of(token)
  return held and covers(held, class)
end
if any(function() return not has_it() end) then
  return {-1, seen()}
end
-- Returns the score with which the named token waits for the key.
local function line_of_it()
  return to ~= '' and tonumber(redis.call('ZSCORE', queue, to) or nil)
end
local is_named = any(line_of_it)
if not is_named then
  to = ''
  if not any(is_late) then
    return {1, seen()}
  end
end
local left
any(function()
  -- Another program may use the key of the queue. This call raises the error, before any key is handed off. It changes nothing, but a full
  -- server lets a script continue that has begun with it.
  redis.call('ZREM', queue, '')
  local _, ends = share_of(token)
  local rest = ends and ends - now or redis.call('PTTL', lock)
  left = math.max(math.min(left or rest, rest), 1)
end)
-- The lock is kept if the token may not join the queue.
any(join)
any(function() drop(token) end)
local is_own, is_left_to_it = false, false
any(function()
  local line, own_ttl = line_of_it(), not has_several and left or nil
  -- Other holders of the key have to yield to this token as well, and must not let each other in before.
  if line and line < 2 and is_taken_from(to, line) or line and line >= 2 and nudge(to) then
    is_left_to_it = true
    return
  end
  if line and line >= 2 then
    strike(to)
  elseif line then
    give_to(to, line, claim)
  end
  is_own = promote(claim, own_ttl, class)
end)
if has_several and not is_left_to_it and not any(function() return is_held() or is_late() end) then
  take_all(left, claim)
  is_own = true
end
if is_own then
  return {1, seen()}
end
return {0, longest_left(), seen()}
