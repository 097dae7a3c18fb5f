-- The start of extend.lua, for a lock that another token was left with: this one takes its place.
-- ARGV[3] the token that the lock was left with
-- When the lock could not be read, `value` is a table and equals no text: the script goes on, and lock.lua decides what
-- the error means. A mark behind the other token stays behind this one, because the same tokens wait.
if value == ARGV[3] or value == ARGV[3] .. MARK then
  value = token .. string.sub(value, TOKEN_LEN + 1)
  -- A server that is full does not let a script begin with a SET.
  redis.call('PEXPIRE', lock, ARGV[2])
  redis.call('SET', lock, value, 'PX', ARGV[2])
end
