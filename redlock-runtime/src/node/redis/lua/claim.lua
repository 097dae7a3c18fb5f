-- The part of the scripts that pass a lock on that words the announcement.

-- What tells the process of a token that it has the lock as a claim of so many ms, which began at `begun`, the answer to TIME
-- from before the key was set. Managers of older versions are not told the times, and neither is a user who may not ask for them.
local function claimed(to, claim, begun)
  if begun[2] and string.byte(to, VERSION_AT) == CLAIMS_VERSION then
    return 'claimed ' .. claim .. ' ' .. begun[1] .. '.' .. begun[2] .. ' ' .. to .. ' ' .. lock
  end
  return 'granted ' .. to .. ' ' .. lock
end

