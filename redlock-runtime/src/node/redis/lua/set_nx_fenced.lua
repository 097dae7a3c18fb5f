-- Takes a free lock, like the plain `SET L token NX PX ttl`, and draws a fencing number for it.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl in ms   and those of fence.lua
-- {number}   ours (-1: without a number)
-- nil        somebody else holds it
if redis.call('SET', lock, token, 'NX', 'PX', ARGV[2]) then
  return {fence()}
end
return false
