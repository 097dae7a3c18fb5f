-- The part of the scripts that take a ballot in: a register for each slot, the largest ballot that the node has accepted for
-- the locks there.
-- A register is a sorted set with one member, whose score is the ballot.

-- The ballot when it is larger than all before, which is accepted; otherwise the one before, as a negative number. 0 when the
-- register cannot be used, because something else has its name or the user may not: that is not an error, because an error would
-- hide what the script has done to the lock. Ballots stay far below 2^53, up to which Lua's numbers are exact.
local function fence(register, ballot)
  -- A ballot of zero only looks, and must not make a register.
  local accepted = ballot == '0' and redis.pcall('ZADD', register, 'XX', 'GT', 'CH', ballot, MEMBER)
    or redis.pcall('ZADD', register, 'GT', 'CH', ballot, MEMBER)
  if accepted == 1 then
    return tonumber(ballot)
  end
  local largest = redis.pcall('ZSCORE', register, MEMBER)
  return type(largest) == 'string' and -tonumber(largest) or 0
end

