-- The middle of acquire.lua, for a lock that another token holds: joins the queue. It comes before the functions of the other parts, see
-- release_marked.lua.
local owner = type(value) == 'string' and string.sub(value, 1, TOKEN_LEN)
if not is_among and owner ~= token and is_token(owner) and (value == owner .. MARK or value == owner) then
  -- In a cluster that moves the slot, KEYS has the key of the lock in place of its queue. No token can join the queue then: the holder is
  -- notified even so, and the waiter asks again.
  if queue ~= lock then
    redis.call('ZADD', queue, 0, token)
    if type(redis.pcall('PEXPIRE', queue, QUEUE_EXPIRY)) == 'table' then
      -- A queue that never expires would stay. The second call raises the error.
      redis.pcall('ZREM', queue, token)
      redis.call('PEXPIRE', queue, QUEUE_EXPIRY)
    end
  end
  if value == owner then
    redis.call('SET', lock, owner .. MARK, 'KEEPTTL')
  end
  local kind = ARGV[4] == 'holds' and 'wanted ' or 'contended '
  redis.pcall('PUBLISH', channels .. string.sub(owner, ATTEMPT_LEN + 2), kind .. owner .. ' ' .. token .. ' ' .. lock)
  local largest = last and is_before(owner, last) and last or owner
  local newest = is_before(token, largest) and string.sub(largest, 1, TIME_LEN) or nil
  local time = '@' .. table.concat(redis.pcall('TIME'), '.')
  local rank = queue == lock and 0 or redis.call('ZRANK', queue, token)
  return {0, redis.call('PTTL', lock), rank, time, newest}
end
