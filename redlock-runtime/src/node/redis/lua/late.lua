-- The part of an extension that may arrive after commands which were sent after it. One of these commands may have set a longer lease, and
-- the client relies on that lease. The lease therefore never becomes shorter.
--
-- ARGV[2] the ttl in ms   ARGV[3], or ARGV[4] of adopt.lua: 'late' if the command arrives after later ones
if ARGV[3] == 'late' or ARGV[4] == 'late' then
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'number' and left > tonumber(ARGV[2]) then
    ARGV[2] = left
  end
end
