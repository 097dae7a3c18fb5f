-- The part of the scripts that record a ballot. Each slot has a register: the largest ballot that the node has accepted for the locks of
-- this slot. A register is a sorted set with one member, whose score is the ballot.

-- Accepts the ballot if it is larger than all previous ones, and returns it. Otherwise returns the previous one as a negative number.
-- Returns 0 if the register cannot be used, because another program uses its key or the user lacks the permission. This is not an error: an
-- error would hide the effect of the script on the lock. Ballots stay far below 2^53, up to which Lua's numbers are exact.
local function fence(register, ballot)
  -- A ballot of zero only reads, and must not create a register.
  local accepted = ballot == '0' and redis.pcall('ZADD', register, 'XX', 'GT', 'CH', ballot, MEMBER)
    or redis.pcall('ZADD', register, 'GT', 'CH', ballot, MEMBER)
  if accepted == 1 then
    return tonumber(ballot)
  end
  local largest = redis.pcall('ZSCORE', register, MEMBER)
  return type(largest) == 'string' and -tonumber(largest) or 0
end

