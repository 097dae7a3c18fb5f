-- The middle of release.lua, for a lock with waiters: the first waiter gets the lock. It comes before the functions of the rest, because
-- creating them takes longer than this whole part. The rest handles the unusual cases:
-- - The token is in its own queue.
-- - The first member of the queue is not a token.
-- - The process of the first waiter does not listen. The lock is already set to this waiter then. The rest hands it to one of the other
--   waiters in the queue.
if not is_among and value == token .. MARK then
  if not last then
    -- The waiters have left. Or the queue cannot be read: another program uses its key, or a cluster moves the slot.
    redis.call('DEL', lock)
    return {1}
  end
  local first = redis.pcall('ZRANGE', queue, 0, 0)[1]
  if is_token(first) and first ~= token and last ~= token then
    -- A holder that is in its queue, between others, leaves the queue as well. This command comes before the SET in any case: a full server
    -- refuses a SET to a script that has not begun to write.
    redis.call('ZREM', queue, token)
    local begun = redis.pcall('TIME')
    redis.call('SET', lock, first == last and first or first .. MARK, 'PX', ARGV[2])
    local channel = channels .. string.sub(first, ATTEMPT_LEN + 2)
    local received = redis.pcall('PUBLISH', channel, claimed(first, ARGV[2], begun))
    -- Clients that subscribe to a pattern are subtracted, as in notify.lua.
    if type(received) == 'number' and received > (HAS_PATTERNS and redis.call('PUBLISH', channel .. '-', '') or 0) then
      redis.call('ZREM', queue, first)
      return {1, is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil}
    end
  end
end
