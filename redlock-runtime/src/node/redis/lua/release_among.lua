-- release.lua among readers or for several names, with the same arguments and replies. Whoever only waited lets those in, too, who
-- were behind it.
local claim, is_ours = ARGV[2], true
any(function()
  -- Something else may have the name of the queue.
  local line = redis.pcall('ZSCORE', queue, token)
  line = type(line) == 'string' and tonumber(line)
  strike(token)
  local held = hold_of(token)
  is_ours = is_ours and held
  drop(token)
  here.freed = held or line and class_of(line)
end)
-- When all names are given back: who waits for several may have them.
any(function()
  -- A further release after an unfinished one finds nothing of its own.
  promote(claim, nil, here.freed)
end)
return {(is_ours and 1 or -1) * (looks > 0 and 1 or 2), seen()}
