-- Leaves the queues, and releases the hold of the token. A token that only waited lets the waiters behind it in, too.
--
-- KEYS[1] the lock   KEYS[2] its queue   and so on   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
--
-- - `1` or `{1}`: released (1 comes from the heads)
-- - `{-1}`: the token does not hold the lock
-- - `{2}` or `{-2}`: like {1} or {-1}, and the command is unfinished, see gone.lua: a further release finds the next waiter
--
-- Every array ends with the time of the newest token, if it is newer than this one.
local claim, is_ours = ARGV[2], true
any(function()
  -- Another program may use the key of the queue.
  local line = redis.pcall('ZSCORE', queue, token)
  line = type(line) == 'string' and tonumber(line)
  strike(token)
  local held = hold_of(token)
  is_ours = is_ours and held
  drop(token)
  here.freed = held or line and class_of(line)
end)
-- All keys are released before this: waiters for several keys may then get them.
any(function()
  -- A further release after an unfinished one finds no hold and no entry of the token.
  promote(claim, nil, here.freed)
end)
return {(is_ours and 1 or -1) * (budget > 0 and 1 or 2), seen()}
