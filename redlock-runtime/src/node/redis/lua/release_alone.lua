-- The start of release.lua, for a lock that nobody has come to wait for.
-- An error counts as somebody: what it means is decided later.
if value == token then
  redis.call('DEL', lock)
  return 1
end
