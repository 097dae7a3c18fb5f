-- Leaves the queue, and passes the lock on if the token owns it.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
-- 1 or {1}     released (1 comes from release_alone.lua)
-- {-1}         the token does not own the lock
-- {2} or {-2}  the same, and the command is unfinished, as gone.lua says: a further release finds the next waiter
-- and at the end of an array the time of the newest token, if it is newer than this one
local holder = find_holder()
if last then
  redis.call('ZREM', queue, token)
end
-- The further release finds the lock free.
if holder == token or not holder and last then
  -- An owner that stands in its own queue has just left it, so that another one may be the last.
  hand_over(ARGV[2], last == token and waiter(-1) or last)
end
return {(holder == token and 1 or -1) * (looks > 0 and 1 or 2), newest(holder, last)}
