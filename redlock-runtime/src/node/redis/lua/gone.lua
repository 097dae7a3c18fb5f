-- The part of the scripts that counts waiters whose processes are gone; see protocol/node_state/gone.rs.

-- The managers that do not listen, as this command has found; and the rest of its budget for absent waiters. Once the budget is spent, the
-- command is unfinished: the reply asks the client to send it again.
local gone, budget = {}, GONE_BUDGET
local function manager_of(who)
  return string.sub(who, ATTEMPT_LEN + 2)
end

-- Counts an absent waiter that is removed.
local function count_gone(who)
  local manager = manager_of(who)
  budget = budget - (gone[manager] and 1 or FINDING_COST)
  gone[manager] = true
end
