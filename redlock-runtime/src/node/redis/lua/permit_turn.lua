-- The beginning of permit_enter.lua: the token that is named stands in the turnstile, whose lease starts anew.
local turn = redis.call('GET', KEYS[3])
if turn ~= ARGV[4] and turn ~= ARGV[4] .. MARK then
  return {-1}
end
redis.call('PEXPIRE', KEYS[3], ARGV[5])
