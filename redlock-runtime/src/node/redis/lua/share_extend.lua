-- Starts the lease of a share anew; never creates one. A lock that the token has alone is shared from now on.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
-- ARGV[4] the token that the share was left with, whose place this one takes; empty for none
-- ARGV[5] 'late', if it stands behind commands that were sent after it: then it makes no lease shorter, as in late.lua
-- {n}    extended, and n tokens wait to have the lock alone
-- {-1}   the token has no share
-- and at the end the time of the server as `@seconds.microseconds`; then the time of the newest token, if it is newer
local from = ARGV[4]
local is_ours = owner == token or end_of(token)
local is_theirs = not is_ours and from ~= '' and (owner == from or end_of(from))
if not is_ours and not is_theirs then
  return {-1, time, seen}
end
local ttl = ARGV[2] + 0
if ARGV[5] == 'late' and is_ours then
  ttl = math.max(ttl, owner == token and redis.call('PTTL', lock) or end_of(token) - now)
end
local was_alone = owner == token or is_theirs
if is_theirs then
  drop(from)
end
share(token, ttl)
if was_alone then
  promote(ARGV[3])
end
return {redis.call('ZCOUNT', queue, ALONE, ALONE), time, seen}
