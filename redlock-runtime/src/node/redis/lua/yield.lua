-- Hands the lock to a smaller token, if one waits, and joins the queue.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
-- ARGV[3] a token that comes first if it waits, even if it is not the smallest; empty for none
--
-- - `{1}`: kept, with an unchanged expiry
-- - `{0, left}`: another token holds the lock, for `left` ms
-- - `{-1}`: the token does not hold the lock
--
-- Every reply ends with the time of the newest token, if it is newer than this one.
local holder = find_holder()
if holder ~= token then
  return {-1, newest(holder, last)}
end
if ARGV[3] ~= '' and redis.pcall('ZREM', queue, ARGV[3]) == 1 then
  local left = redis.call('PTTL', lock)
  join_queue()
  local begun = redis.pcall('TIME')
  redis.call('SET', lock, ARGV[3] .. MARK, 'PX', ARGV[2])
  -- If no process receives the notification, the process of this token is gone.
  if notify(ARGV[3], claimed(ARGV[3], ARGV[2], begun)) == 0
    and hand_over(ARGV[2], waiter(-1), math.max(left, 1)) == token then
    return {1, newest(holder, last)}
  end
  return {0, left_of_holder(), newest(holder, last)}
elseif not last or is_before(token, waiter(0)) then
  return {1, newest(holder, last)}
end
local left = redis.call('PTTL', lock)
join_queue()
-- An expiry must be positive. PTTL can be 0, because it rounds down, and -1, if another client has removed the expiry.
if hand_over(ARGV[2], later(last, token), math.max(left, 1)) == token then
  return {1, newest(holder, last)}
end
return {0, left_of_holder(), newest(holder, last)}
