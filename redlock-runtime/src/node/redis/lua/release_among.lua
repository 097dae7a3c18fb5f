-- release.lua among readers, with the same arguments and replies. Whoever only waited lets those in, too, who were behind it.
local claim = ARGV[2]
-- Something else may have the name of the queue.
local left_queue = redis.pcall('ZREM', queue, token, token .. '#')
local was_waiting = type(left_queue) == 'number' and left_queue > 0
local is_ours = owner == token or end_of(token)
drop(token)
if is_ours or was_waiting then
  promote(claim)
end
return {is_ours and 1 or -1, seen}
