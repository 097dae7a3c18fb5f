-- Passes the lock on to a smaller token, if one waits, and waits for it in the queue.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
-- ARGV[3] a token that comes first if it waits, whichever is smaller; empty for none
-- {1}         kept, and its expiry is what it was
-- {0, left}   another token owns the lock, for so many ms
-- {-1}        the token does not own the lock
-- and at the end the time of the newest token, if it is newer than this one
local holder = find_holder()
if holder ~= token then
  return {-1, newest(holder, last)}
end
if ARGV[3] ~= '' and redis.pcall('ZREM', queue, ARGV[3]) == 1 then
  local left = redis.call('PTTL', lock)
  join_queue()
  local begun = redis.pcall('TIME')
  redis.call('SET', lock, ARGV[3] .. MARK, 'PX', ARGV[2])
  -- Nobody receives it: that process is gone.
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
-- An expiry must be positive. PTTL can be 0, because it rounds down, and -1, when somebody has removed the expiry.
if hand_over(ARGV[2], later(last, token), math.max(left, 1)) == token then
  return {1, newest(holder, last)}
end
return {0, left_of_holder(), newest(holder, last)}
