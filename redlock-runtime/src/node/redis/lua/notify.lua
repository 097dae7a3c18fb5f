-- The part of the scripts that wake others.

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 when this user may not publish.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local received = redis.pcall('PUBLISH', channels .. string.sub(to, ATTEMPT_LEN + 2), text)
  return type(received) == 'number' and received or 0
end

