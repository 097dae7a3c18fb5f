-- Takes a share of the lock, or several keys, unless a holder or an earlier waiter conflicts. It never waits.
--
-- KEYS[1] the lock   KEYS[2] its queue   and so on   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
--
-- - `{1}` or `{1, 0}`: granted
-- - `{0}`: taken
--
-- Every reply ends with the time of the newest token, if it is newer than this one.
for _ = 1, MOST_STEPS do
  any(function()
    if is_late() then
      -- A free key belongs to the waiters that came before.
      promote(ARGV[3])
    end
  end)
  if any(function() return is_held() or is_data() end) then
    break
  elseif not any(is_late) then
    take_all(ARGV[2], ARGV[3])
    return {1, seen()}
  elseif not any(passes_over) then
    break
  end
end
return {0, seen()}
