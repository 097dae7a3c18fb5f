-- The part that tells the set of the readers of a key from a set of another program.

-- Returns true if the first member of a set, given with its score, was written by these scripts. Scores of other programs, such as times in
-- seconds, milliseconds or microseconds, are not times after SHARE.
local function are_ours(first)
  local score = tonumber(first[2])
  return score ~= nil and score >= SHARE and score < (RESERVING + 1) * SHARE
end

-- Returns true if all members are readers of the key. The last member decides, because holders of other classes have larger scores.
local function are_readers(last)
  return are_ours(last) and tonumber(last[2]) < 2 * SHARE
end
