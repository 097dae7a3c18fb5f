-- The middle of acquire.lua, for a lock that is free and that no earlier token waits for, or that the token holds already.
if not is_among and (not value or value == token or value == token .. MARK) then
  local first = last and redis.pcall('ZRANGE', queue, 0, 0)[1]
  local is_second = first and is_before(first, token)
  if value or not is_second or ARGV[4] == 'holds' then
    -- In a cluster that moves the slot, KEYS has the key of the lock in place of its queue, where others may wait.
    if first or queue == lock then
      -- Also the first write: a full server refuses a SET to a script that has not begun to write.
      redis.call('ZREM', queue, token)
    end
    if value then
      redis.call('PEXPIRE', lock, ARGV[2])
    else
      local is_waited_for = queue == lock or last and (first ~= token or last ~= token)
      redis.call('SET', lock, is_waited_for and token .. MARK or token, 'PX', ARGV[2])
    end
    return {1, value and is_second and 1 or 0, last and is_before(token, last) and string.sub(last, 1, TIME_LEN) or nil}
  end
end
