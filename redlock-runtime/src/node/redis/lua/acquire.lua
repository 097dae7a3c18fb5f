-- Takes the lock, or all keys of the request, if no holder and no earlier waiter conflicts. Otherwise joins the queues. The heads
-- acquire_taken.lua, acquire_free.lua, share_alone.lua and set_alone.lua handle the frequent cases.
--
-- KEYS[1] the lock   KEYS[2] its queue   and so on   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
--
-- ARGV[4] `holds` if the token holds the lock by enough other nodes. It then comes before all waiters, because none of them can get the
-- lock. The holder at this node is notified of that.
--
-- - `{1, smaller}`: granted; smaller is 1 if the token held the lock before, and a smaller token waits
-- - `{0, left, rank}`: held by another token for `left` ms (-1: without end), behind `rank` other waiters
-- - `{-1}`: the key holds data, which is never released
--
-- The reply `{0, ..}` ends with the time of the server as `@seconds.microseconds`. Finally, every reply ends with the time of the newest
-- token, if it is newer than this one.
local ttl, claim, holds = ARGV[2], ARGV[3], ARGV[4] == 'holds'
if not any(function() return not hold_of(token) end) then
  local smaller = any(is_late) and 1 or 0
  take_all(ttl, claim)
  return {1, smaller, seen()}
end

-- Every client that takes a lock here sets an expiry with it, even another library.
if any(is_data) then
  return {-1}
end

local function is_blocked()
  return is_held() or not holds and is_late()
end
if not any(is_blocked) then
  take_all(ttl, claim)
  return {1, 0, seen()}
end

-- Another program may use the key of a queue. This call raises the error, before anything is written for the other keys.
any(function() redis.call('ZCARD', queue) end)
-- A request that has lost some of its keys drops the others and waits for all of them: it blocks no other token in the meantime.
local freed = {}
any(function()
  freed[here] = has_several and hold_of(token)
  if freed[here] then
    drop(token)
  end
end)
local kind = holds and 'wanted ' or 'contended '
any(function()
  join()
  if owner and owner ~= token then
    if not is_marked and is_token(owner) then
      redis.call('SET', lock, owner .. MARK, 'KEEPTTL')
      is_marked = true
    end
    notify(owner, kind .. owner .. ' ' .. token .. ' ' .. lock)
  elseif not owner then
    local told = 0
    for _, line in ipairs(against[class]) do
      for _, holder in ipairs(line > 0 and line < SEVERAL and holders(line, MOST_TOLD + 1) or {}) do
        if holder ~= token and told < MOST_TOLD then
          notify(holder, kind .. holder .. ' ' .. token .. ' ' .. lock)
          told = told + 1
        end
      end
    end
  end
end)
any(function()
  if freed[here] then
    promote(claim, nil, freed[here])
  end
end)
for _ = 1, MOST_STEPS do
  local is_in
  if has_several then
    any(function() promote(claim) end)
    is_in = not any(is_blocked)
    if is_in then
      take_all(ttl, claim)
    end
  else
    is_in = promote(claim, ttl)
  end
  if is_in then
    return {1, 0, seen()}
  elseif not any(passes_over) then
    break
  end
end
local rank = 0
any(function()
  if has_several and not is_held() and not is_late() then
    reserve(token)
  end
  rank = budget > 0 and math.max(rank, redis.call('ZRANK', queue, token)) or 0
end)
return {0, longest_left(), rank, time, seen()}
