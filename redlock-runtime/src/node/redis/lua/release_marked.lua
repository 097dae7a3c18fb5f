-- The middle of release.lua, for a lock that others wait for: the first of them gets it, as in hand.lua. It stands before
-- the functions of those parts, since it takes longer to make them than to do without.
-- Whatever is not as usual is left to them: the token stands in its own queue, nobody is there, the first is no token, its
-- process does not listen. They find the others in the queue, and give a lock away that is already given to the first of them.
if not is_among and value == token .. MARK then
  local first = redis.pcall('ZRANGE', queue, 0, 0)[1]
  if is_token(first) and first ~= token and last ~= token then
    -- A token that has the lock and stands in its queue, between others, leaves it as well. Before the SET in any case, which a
    -- full server refuses to a script that has not begun to write.
    redis.call('ZREM', queue, token)
    local begun = redis.pcall('TIME')
    redis.call('SET', lock, first == last and first or first .. MARK, 'PX', ARGV[2])
    local channel = channels .. string.sub(first, ATTEMPT_LEN + 2)
    local received = redis.pcall('PUBLISH', channel, claimed(first, ARGV[2], begun))
    -- Less those who subscribe to a pattern, as in notify.lua.
    if type(received) == 'number' and received > (HAS_PATTERNS and redis.call('PUBLISH', channel .. '-', '') or 0) then
      redis.call('ZREM', queue, first)
      return {1, is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil}
    end
  end
end
