-- The beginning of release.lua among readers, for a user who may not ask for the time, for scores or for their number: what the token
-- has is given back, and those who wait find that out when they ask again.
if redis.pcall('TIME').err or type(redis.pcall('ZSCORE', queue, token)) == 'table' or type(redis.pcall('ZCOUNT', queue, 0, 0)) == 'table' then
  -- Something else may have the name of the queue.
  redis.pcall('ZREM', queue, token, token .. '#')
  local is_ours = value == token or value == token .. MARK
  if is_ours and redis.call('DEL', lock) == 1 or not value and redis.call('ZREM', lock, token) == 1 then
    return {1}
  end
  return {-1}
end
