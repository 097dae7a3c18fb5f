-- The part of the scripts that counts waiters whose processes are gone; see protocol/node_state/gone.rs.

-- The managers that do not listen, as this command has found; and the rest of its budget for absent waiters. Once the budget is spent, the
-- command is unfinished: the reply asks the client to send it again.
local gone, budget, last_line = {}, GONE_BUDGET, nil
local function manager_of(who)
  return string.sub(who, ATTEMPT_LEN + 2)
end

-- Counts an absent waiter with the score `line` that is removed.
local function count_gone(who, line)
  local manager = manager_of(who)
  local is_cheap = gone[manager] and line == last_line and line <= SHARING
  budget = budget - (is_cheap and 1 or FINDING_COST)
  gone[manager], last_line = true, line
end
