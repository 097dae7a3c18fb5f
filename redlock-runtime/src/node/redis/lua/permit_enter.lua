-- Takes a permit for a token that stands in the turnstile, or starts the lease of one anew, and tells who else has one. It never
-- waits.
-- KEYS[1] the lock   KEYS[2] its queue   KEYS[3] its turnstile
-- ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms   ARGV[4] the token that stands in the turnstile
-- ARGV[5] for how long it does from now on   ARGV[6] 'late', if it stands behind commands that were sent after it: then it takes none
--         a permit that it has gets no shorter by it, as in late.lua
-- {1, left, others}   ours; of the others, the first loses its permit after so many ms (-1: there are none)
-- {0}                 somebody has the lock alone, or has come before to have it alone
-- {-1}                another token stands in the turnstile
-- and at the end the time of the newest token, if it is newer than this one
local is_in, ends = share_of(token)
if ARGV[6] == 'late' and not is_in then
  return {-1, seen()}
elseif is_in then
  take(token, SHARING, ARGV[6] == 'late' and math.max(ARGV[2], ends - now) or ARGV[2])
else
  for _ = 1, MOST_STEPS do
    if is_late() then
      -- A lock that is free is that of those who have come before.
      promote(ARGV[3])
    end
    if is_held() or is_data() then
      break
    elseif not is_late() then
      take_all(ARGV[2], ARGV[3])
      is_in = true
      break
    elseif not passes_over() then
      break
    end
  end
end
if not is_in then
  if owner and owner ~= true then
    -- It may be had for nobody, or for one call of a process after the other.
    notify(owner, 'contended ' .. owner .. ' ' .. token .. ' ' .. lock)
  end
  return {0, seen()}
end
local answer = entered()
answer[4] = seen()
return answer
