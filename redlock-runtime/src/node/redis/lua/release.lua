-- Leaves the queue, and hands the lock off if the token holds it.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
--
-- - `1` or `{1}`: released (1 comes from release_alone.lua)
-- - `{-1}`: the token does not hold the lock
-- - `{2}` or `{-2}`: like {1} or {-1}, and the command is unfinished, see gone.lua: a further release finds the next waiter
--
-- Every array ends with the time of the newest token, if it is newer than this one.
local holder = find_holder()
if last then
  redis.call('ZREM', queue, token)
end
-- The further release finds the lock free.
if holder == token or not holder and last then
  -- A holder that was in its own queue has just left it, so that another token may be the last.
  hand_over(ARGV[2], last == token and waiter(-1) or last)
end
return {(holder == token and 1 or -1) * (looks > 0 and 1 or 2), newest(holder, last)}
