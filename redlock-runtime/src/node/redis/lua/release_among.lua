-- release.lua among readers, with the same arguments and replies. Whoever only waited lets those in, too, who were behind it.
local claim = ARGV[2]
local was_waiting = redis.call('ZREM', queue, token, token .. '#') > 0
local is_ours = owner == token or end_of(token)
drop(token)
if is_ours or was_waiting then
  promote(claim)
end
return {is_ours and 1 or -1, seen}
