-- The part of the scripts that notify other processes.

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 if this user may not publish.
--
-- A client that subscribes to a pattern is one of the receivers. With HAS_PATTERNS, these clients are subtracted: they receive an empty
-- text on a channel to which no client subscribes by its name.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local channel = channels .. string.sub(to, ATTEMPT_LEN + 2)
  local received = redis.pcall('PUBLISH', channel, text)
  if type(received) ~= 'number' then
    return 0
  end
  return HAS_PATTERNS and received - redis.call('PUBLISH', channel .. '-', '') or received
end

