-- yield.lua among readers, with the same arguments and replies.
local claim, to = ARGV[2], ARGV[3]
local is_ours = owner == token or class == SHARING and end_of(token)
if not is_ours then
  return {-1, seen}
end
local as = to ~= '' and redis.call('ZSCORE', queue, to)
as = as and tonumber(as)
if not as and not is_behind() then
  return {1, seen}
end
local left = math.max(owner == token and redis.call('PTTL', lock) or end_of(token) - now, 1)
drop(token)
join()
local is_own = false
-- Others who share the lock have to yield to that one as well, and must not let each other back in before.
if as ~= ALONE or not readers(1)[1] then
  if as then
    give_to(to, as, claim)
  end
  is_own = promote(claim, left)
end
if is_own then
  return {1, seen}
end
return {0, redis.call('PTTL', lock), seen}
