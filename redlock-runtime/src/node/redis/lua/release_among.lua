-- release.lua for shared locks and for several keys, with the same arguments and replies. A token that only waited lets the waiters behind
-- it in, too.
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
return {(is_ours and 1 or -1) * (looks > 0 and 1 or 2), seen()}
