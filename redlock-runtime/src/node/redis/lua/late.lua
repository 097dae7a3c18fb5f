-- The part of an extension that stands behind commands which were sent after it. One of them may have made the lease longer
-- than this one would, and a client counts on that: so the lease gets no shorter.
-- ARGV[2] the ttl in ms
local left = redis.pcall('PTTL', lock)
if type(left) == 'number' and left > tonumber(ARGV[2]) then
  ARGV[2] = left
end
