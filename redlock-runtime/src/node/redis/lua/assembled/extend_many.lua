-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- Restarts the leases of several locks without waiters; never creates a lock.
--
-- KEYS the locks   ARGV[1] the ttl in ms   ARGV[i + 1] the token of KEYS[i]
--
-- - `{time, i, ..}`: the time of the server as in extend.lua, and the numbers of the locks that were not extended: extend.lua is then sent
--   for each of them
local answer = {''}
for i, key in ipairs(KEYS) do
  if redis.pcall('GET', key) == ARGV[i + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
  else
    table.insert(answer, i)
  end
end
answer[1] = '@' .. table.concat(redis.pcall('TIME'), '.')
return answer
