-- Takes a permit for a token that holds the admission lock, or restarts the lease of its permit, and returns the other holders. It never waits.
--
-- KEYS[1] the lock   KEYS[2] its queue   KEYS[3] its admission lock
-- ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms   ARGV[4] the token that holds the admission lock
-- ARGV[5] the new remaining time of the admission lock, in ms
--
-- ARGV[6] 'late' if the command arrives after commands that were sent after it. It then grants no new permit, and makes no permit shorter,
-- as in late.lua.
--
-- - `{1, left, others}`: granted; the first permit of the others ends after `left` ms (-1: none)
-- - `{0}`: the lock is held exclusively, or an earlier waiter wants it exclusively
-- - `{-1}`: another token holds the admission lock
--
-- Every reply ends with the time of the newest token, if it is newer than this one.
local is_in, ends = share_of(token)
if ARGV[6] == 'late' and not is_in then
  return {-1, seen()}
elseif is_in then
  take(token, SHARING, ARGV[6] == 'late' and math.max(ARGV[2], ends - now) or ARGV[2])
else
  for _ = 1, MOST_STEPS do
    if is_late() then
      -- A free lock belongs to the waiters that came before.
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
    -- The holder may keep an idle lease, or serve one call of its process after the other.
    notify(owner, 'contended ' .. owner .. ' ' .. token .. ' ' .. lock)
  end
  return {0, seen()}
end
local answer = entered()
answer[4] = seen()
return answer
