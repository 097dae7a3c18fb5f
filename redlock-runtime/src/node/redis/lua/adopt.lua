-- The start of extend.lua, for a lock that another token left behind: this token takes its place.
--
-- ARGV[3] the token that the lock was left with
--
-- If the lock could not be read, `value` is a table and equals no text: the script continues, and lock.lua handles the error. A mark after
-- the other token stays after this one, because the same tokens wait.
if value == ARGV[3] or value == ARGV[3] .. MARK then
  value = token .. string.sub(value, TOKEN_LEN + 1)
  -- A server that is full does not let a script begin with a SET.
  redis.call('PEXPIRE', lock, ARGV[2])
  redis.call('SET', lock, value, 'PX', ARGV[2])
end
