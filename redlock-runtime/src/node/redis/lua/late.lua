-- The part of an extension that may stand behind commands which were sent after it. One of them may have made the lease longer
-- than this one would, and a client counts on that: so the lease gets no shorter.
-- ARGV[2] the ttl in ms   ARGV[3], or ARGV[4] of adopt.lua: 'late', if it does stand behind others
if ARGV[3] == 'late' or ARGV[4] == 'late' then
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'number' and left > tonumber(ARGV[2]) then
    ARGV[2] = left
  end
end
