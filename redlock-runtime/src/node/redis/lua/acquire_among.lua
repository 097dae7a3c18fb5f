-- acquire.lua among readers, with the same arguments and replies.
local ttl, claim, holds = ARGV[2], ARGV[3], ARGV[4] == 'holds'
if owner == token or end_of(token) then
  local smaller = is_behind() and 1 or 0
  strike(token)
  if owner == token and class == ALONE then
    redis.call('PEXPIRE', lock, ttl)
  else
    share(token, ttl)
    promote(claim)
  end
  return {1, smaller, seen}
end

-- Whatever takes a lock here sets an expiry with it, also when it is another client.
if owner == true or redis.call('PTTL', lock) == -1 then
  return {-1}
end

local is_held = owner or class == ALONE and readers(1)[1]
if not is_held and (holds or not is_behind()) then
  strike(token)
  take(token, class, ttl)
  promote(claim)
  return {1, 0, seen}
end

join()
local kind = holds and 'wanted ' or 'contended '
if owner then
  if not is_marked and is_token(owner) then
    redis.call('SET', lock, owner .. MARK, 'KEEPTTL')
    is_marked = true
  end
  notify(owner, kind .. owner .. ' ' .. token .. ' ' .. lock)
elseif class == ALONE then
  for _, reader in ipairs(readers(MOST_TOLD)) do
    notify(reader, kind .. reader .. ' ' .. token .. ' ' .. lock)
  end
end
for _ = 1, MOST_STEPS do
  if promote(claim, ttl) then
    return {1, 0, seen}
  elseif not passes_a_writer_over() then
    break
  end
end
return {0, redis.call('PTTL', lock), redis.call('ZRANK', queue, token), time, seen}
