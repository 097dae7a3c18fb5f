-- The part of the scripts that formats the announcement of a hand-off.

-- Returns the text that notifies a process: its token now holds the lock as a claim of `claim` ms. The claim began at `begun`, the reply to
-- TIME from before the key was set. The times are missing for managers of older versions, and for a user without TIME.
local function claimed(to, claim, begun)
  if begun[2] and string.byte(to, VERSION_AT) == CLAIMS_VERSION then
    return 'claimed ' .. claim .. ' ' .. begun[1] .. '.' .. begun[2] .. ' ' .. to .. ' ' .. lock
  end
  return 'granted ' .. to .. ' ' .. lock
end

