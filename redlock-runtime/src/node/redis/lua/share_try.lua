-- Takes a share of the lock, unless somebody has it alone or has come before to have it alone. It never waits.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
-- {1} or {1, 0}   ours
-- {0}             taken
-- and at the end the time of the newest token, if it is newer than this one
for _ = 1, MOST_STEPS do
  if is_behind() then
    -- A lock that is free is that of those who have come before.
    promote(ARGV[3])
  end
  if owner or redis.call('PTTL', lock) == -1 then
    break
  elseif not is_behind() then
    share(token, ARGV[2])
    promote(ARGV[3])
    return {1, seen}
  elseif not passes_a_writer_over() then
    break
  end
end
return {0, seen}
