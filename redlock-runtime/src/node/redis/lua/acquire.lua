-- Takes the lock if it is free and no earlier token waits. Otherwise joins the queue.
--
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the ttl   ARGV[3] the lifetime of a claim, in ms
--
-- ARGV[4] `holds` if the token holds the lock by enough other nodes. It then comes before all waiters, because none of them can get the
-- lock. The holder at this node is notified of that.
--
-- - `{1, smaller}`: granted; smaller is 1 if the token held the lock before, and a smaller token waits
-- - `{0, left, rank}`: held by another token for `left` ms (-1: without end), behind `rank` other waiters
-- - `{-1}`: the key holds data, which is never released
--
-- The reply `{0, ..}` ends with the time of the server as `@seconds.microseconds`, only `@` for a user who may not run TIME. Finally, every
-- reply ends with the time of the newest token, if it is newer than this one.
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
  -- In a cluster that moves the slot, KEYS has the key of the lock in place of its queue, where others may wait.
  if last or queue == lock then
    redis.call('ZREM', queue, token)
    -- A token with `holds` may be the last in the queue and have others before it.
    give(token, ARGV[2], is_second and waiter(0) or last)
  else
    redis.call('SET', lock, token, 'PX', ARGV[2])
  end
  return {1, 0, newest(holder, last)}
end

-- Every client that takes a lock here sets an expiry with it, even another library.
if holder and (holder == true or redis.call('PTTL', lock) == -1) then
  return {-1}
end

-- Another program holds the lock and cannot be notified. Or the lock is free, and the first waiter gets it.
join_queue()
if not holder and hand_over(ARGV[3], later(last, token), ARGV[2]) == token then
  return {1, 0, newest(holder, last)}
end
local time = '@' .. table.concat(redis.pcall('TIME'), '.')
return {0, left_of_holder(), looks > 0 and redis.call('ZRANK', queue, token) or 0, time, newest(holder, last)}
