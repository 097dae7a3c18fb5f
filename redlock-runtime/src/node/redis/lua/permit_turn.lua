-- The beginning of permit_enter.lua: checks that the named token holds the admission lock, and restarts the lease of the admission lock.
local turn = redis.call('GET', KEYS[3])
if turn ~= ARGV[4] and turn ~= ARGV[4] .. MARK then
  return {-1}
end
redis.call('PEXPIRE', KEYS[3], ARGV[5])
