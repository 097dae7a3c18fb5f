-- acquire.lua for shared locks and for several keys, with the same arguments and replies.
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
  rank = looks > 0 and math.max(rank, redis.call('ZRANK', queue, token)) or 0
end)
return {0, longest_left(), rank, time, seen()}
