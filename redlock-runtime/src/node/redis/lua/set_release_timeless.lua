-- release_timeless.lua for several keys.
local is_refused = redis.pcall('TIME').err
for _, verb in ipairs({{'ZSCORE', queue, token}, {'ZCOUNT', queue, 0, 0}}) do
  local said = redis.pcall(unpack(verb))
  -- Another program may use the key of the queue.
  is_refused = is_refused or type(said) == 'table' and not string.find(said.err, 'WRONGTYPE', 1, true)
end
if is_refused then
  local is_ours = true
  for at = 1, #wanted do
    local name, beside, gone = KEYS[2 * at - 1], KEYS[2 * at], 0
    redis.pcall('ZREM', beside, token, token .. '#')
    local held = redis.pcall('GET', name)
    if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
      -- The key could not be read. This call raises the error, so that the client repeats the release.
      redis.call('GET', name)
    elseif type(held) == 'table' then
      -- The key is a set of readers, or has another type.
      gone = redis.pcall('ZREM', name, token)
    elseif held and string.sub(held, 1, TOKEN_LEN) == token and ENDINGS[string.sub(held, TOKEN_LEN + 1)] then
      gone = redis.call('DEL', name)
    end
    is_ours = is_ours and gone == 1
  end
  return {is_ours and 1 or -1}
end
is_leaving = true
