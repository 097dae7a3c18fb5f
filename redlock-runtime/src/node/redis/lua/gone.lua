-- The part of the scripts that removes waiters whose processes are gone; see protocol/node_state/gone.rs.

-- The managers that do not listen, as this command has found; and how many more absent waiters it may look at. When it may look at
-- none, the command is unfinished: the reply asks the client to send it again.
local gone, looks = {}, MOST_GONE
local function manager_of(who)
  return string.sub(who, ATTEMPT_LEN + 2)
end

-- Removes an absent waiter, and those of all absent managers among the next waiters with the same score; but not the token that asks.
local function strike_gone(who, line)
  local members = {who, who .. '#'}
  gone[manager_of(who)], looks = true, looks - 1
  for _, other in ipairs(redis.pcall('ZRANGE', queue, line, line, 'BYSCORE', 'LIMIT', 0, MOST_GONE)) do
    if gone[manager_of(other)] and other ~= token then
      members[#members + 1], members[#members + 2] = other, other .. '#'
    end
  end
  redis.pcall('ZREM', queue, unpack(members))
end
