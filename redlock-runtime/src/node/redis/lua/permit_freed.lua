-- The part of permit_release.lua that notifies the holder of the admission lock. The rest of the release follows, as for any share.
--
-- KEYS[3] the admission lock
--
-- A single holder is no member of a set: `is_leaving` is its class then, see names.lua.
local turn = (share_of(token) or is_leaving ~= true) and redis.pcall('GET', KEYS[3])
if type(turn) == 'string' then
  local by = string.sub(turn, 1, TOKEN_LEN)
  notify(by, 'freed ' .. by .. ' ' .. KEYS[3])
end
