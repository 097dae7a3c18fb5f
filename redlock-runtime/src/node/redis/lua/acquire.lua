-- Takes the lock when it is free and nobody waits for longer, or else waits for it in the queue.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
-- ARGV[4] `holds` when the token has the lock by enough other nodes: it comes before all who wait, since none of them can
-- have it, and who has it here is told so
-- {1, smaller}      ours; smaller is 1 when it was before, and a smaller token waits
-- {0, left, rank}   held by another for so many ms (-1: without end), behind so many others
-- {-1}              the key holds data, which nobody gives back
-- and at the end of {0, ..} the time of the server as `@seconds.microseconds`, only `@` for a user who may not ask for it;
-- then, of all, the time of the newest token, if it is newer than this one
local holder = find_holder()
local is_second = last and is_before(waiter(0), token)
local holds = ARGV[4] == 'holds'

if holder == token then
  redis.call('PEXPIRE', lock, ARGV[2])
  if last then
    redis.call('ZREM', queue, token)
  end
  return {1, is_second and 1 or 0, newest(holder, last)}
end

if not holder and (holds or not is_second) then
  -- A cluster that moves the slot is given the name of the lock in place of its queue, where others may wait.
  if last or queue == lock then
    redis.call('ZREM', queue, token)
    -- Whoever holds may be the last in the queue and have others before it.
    give(token, ARGV[2], is_second and waiter(0) or last)
  else
    redis.call('SET', lock, token, 'PX', ARGV[2])
  end
  return {1, 0, newest(holder, last)}
end

-- Whatever takes a lock here sets an expiry with it, also when it is another client.
if holder and (holder == true or redis.call('PTTL', lock) == -1) then
  return {-1}
end

-- Another program has the lock, which cannot be told of those who wait; or nobody, and whoever comes first gets it.
join_queue()
if not holder and hand_over(ARGV[3], later(last, token), ARGV[2]) == token then
  return {1, 0, newest(holder, last)}
end
local time = '@' .. table.concat(redis.pcall('TIME'), '.')
return {0, left_of_holder(), looks > 0 and redis.call('ZRANK', queue, token) or 0, time, newest(holder, last)}
