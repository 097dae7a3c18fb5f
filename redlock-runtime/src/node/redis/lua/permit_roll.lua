-- The part of permit_enter.lua that builds the reply for a token that has its permit.
local function entered()
  if redis.pcall('GET', lock) == token .. READER then
    return {1, -1, {}}
  end
  local clock = redis.call('TIME')
  local now = SHARE + clock[1] * 1000 + math.floor(clock[2] / 1000)
  -- Members of other classes hold something below the key, or have only reserved it.
  local live = redis.call('ZRANGE', lock, string.format('(%.0f', now), string.format('(%.0f', 2 * SHARE), 'BYSCORE', 'WITHSCORES')
  local others, left = {}, -1
  for i = 1, #live, 2 do
    if live[i] ~= token then
      if #others == 0 then
        left = live[i + 1] - now
      end
      others[#others + 1] = live[i]
    end
  end
  return {1, left, others}
end
