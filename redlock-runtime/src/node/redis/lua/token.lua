-- The part of the scripts that recognizes tokens and compares them.

-- Prefix of the names of channels.
local channels = CHANNEL

-- Returns true if a value is a token. Values of other programs contain neither a time nor a channel, and must not be changed.
local function is_token(value)
  return type(value) == 'string' and #value == TOKEN_LEN
    and string.find(value, '^%x+%-%x%x%x%x%-7%x%x%x%-%x%x%x%x%-%x+@%x+$') ~= nil
    and string.sub(value, ATTEMPT_LEN + 1, ATTEMPT_LEN + 1) == '@'
end

-- Returns true if token a is smaller than token b, byte by byte. Lua's `<` follows the locale of the server, and in some locales `aa` comes
-- after `b`.
local function is_before(a, b)
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return false
end

