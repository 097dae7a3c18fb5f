-- The part that tells the set of those who have a name together from that of another program.

-- Whether the first member of a set, with its score, is one of ours. Scores of others, such as times in seconds, milliseconds or
-- microseconds, are no times behind SHARE.
local function are_ours(first)
  local score = tonumber(first[2])
  return score ~= nil and score >= SHARE and score < (RESERVING + 1) * SHARE
end

-- Whether all members share the name, by the last of them: those who have it in other classes stand behind.
local function are_readers(last)
  return are_ours(last) and tonumber(last[2]) < 2 * SHARE
end
