-- The part that tells the set of readers from that of another program.

-- Whether the first member of a set, with its score, has a share. Scores of others, such as times in seconds, milliseconds or
-- microseconds, are no times behind SHARE.
local function are_readers(first)
  local score = tonumber(first[2])
  return score ~= nil and score >= SHARE and score < 2 * SHARE
end
