-- Generated: this is what the server gets, put together of the parts in the folder above. To write it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
-- The part that reads the lock: false when it is free, a table when it cannot be read.
local value = redis.pcall('GET', lock)
-- The start of release.lua, for a lock that nobody has come to wait for.
-- When the lock could not be read, `value` is a table and equals no token: the script goes on, and lock.lua decides what
-- the error means.
if value == token then
  redis.call('DEL', lock)
  return 1
end
-- The part of the scripts that tells tokens from other texts, and which one of two comes first.

-- Whether a value is a token. Those of other programs hold no time and name no channel, and must not be changed.
local function is_token(value)
  return type(value) == 'string' and #value == 69
    and string.find(value, '^%x+%-%x%x%x%x%-7%x%x%x%-%x%x%x%x%-%x+@%x+$') ~= nil
    and string.sub(value, 36 + 1, 36 + 1) == '@'
end

-- Whether token a is smaller than token b, byte by byte. Lua's `<` follows the locale of the server, and in some
-- locales `aa` comes after `b`.
local function is_before(a, b)
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return false
end

-- The part of the scripts that pass a lock on that words the announcement.

-- What tells the process of a token that it has the lock as a claim of so many ms, which began at `begun`, the answer to TIME
-- from before the key was set. Managers of older versions are not told the times, and neither is a user who may not ask for them.
local function claimed(to, claim, begun)
  if begun[2] and string.byte(to, 50) == 56 then
    return 'claimed ' .. claim .. ' ' .. begun[1] .. '.' .. begun[2] .. ' ' .. to .. ' ' .. lock
  end
  return 'granted ' .. to .. ' ' .. lock
end

-- The middle of release.lua, for a lock that others wait for: the first of them gets it, as in hand.lua. It stands before
-- the functions of those parts, since it takes longer to make them than to do without.
-- Whatever is not as usual is left to them: the token stands in its own queue, nobody is there, the first is no token, its
-- process does not listen. They find the others in the queue, and give a lock away that is already given to the first of them.
if value == token .. '+' then
  local first, last = redis.pcall('ZRANGE', queue, 0, 0)[1], redis.pcall('ZRANGE', queue, -1, -1)[1]
  if is_token(first) and first ~= token and last ~= token then
    -- A token that has the lock and stands in its queue, between others, leaves it as well. Before the SET in any case, which a
    -- full server refuses to a script that has not begun to write.
    redis.call('ZREM', queue, token)
    local begun = redis.pcall('TIME')
    redis.call('SET', lock, first == last and first or first .. '+', 'PX', ARGV[2])
    local channel = 'redlock:' .. string.sub(first, 36 + 2)
    local received = redis.pcall('PUBLISH', channel, claimed(first, ARGV[2], begun))
    if type(received) == 'number' and received > 0 then
      redis.call('ZREM', queue, first)
      return {1, is_before(token, last) and string.sub(last, 1, 18) or nil}
    end
  end
end
-- The part of every script that looks: who holds the lock, who waits, and what is newer than the token that asks.

-- The mark stands behind the token of a holder while others may wait for its lock. A holder that finds its token
-- without the mark need not look at the queue, so that an uncontended release is no more than a comparison and a
-- deletion. In one case others wait and there is no mark: the key had vanished without being handed over, and a plain
-- SET has taken it. Whoever waits asks again after a while, and acquire.lua sets the mark then.

-- The token that has the lock, or whatever another program has put there; false when the lock is free, and true when a
-- key of another type stands there, which counts as taken. The second result is whether the token has the mark.
local function find_holder()
  if type(value) == 'string' and #value == 69 + 1 and string.sub(value, -1) == '+' then
    return string.sub(value, 1, 69), true
  elseif type(value) ~= 'table' then
    return value
  elseif string.find(value.err, 'WRONGTYPE', 1, true) then
    return true
  end
  -- Any other error ends the script: this call raises it.
  return redis.call('GET', lock)
end

-- The smallest (0) or the largest (-1) token in the queue, nil when it is empty. A queue that cannot be read, because
-- something else has its name or the user may not, counts as empty: a lock must be released all the same.
local function waiter(at)
  return redis.pcall('ZRANGE', queue, at, at)[1]
end

-- The time in the larger one of the holder and the last in the queue, when that is larger than the token that asks:
-- whoever asks moves its clock ahead of it.
local function newest(holder, last)
  local largest = token
  if is_token(holder) and is_before(largest, holder) then
    largest = holder
  end
  if last and is_before(largest, last) then
    largest = last
  end
  if largest ~= token then
    return string.sub(largest, 1, 18)
  end
end
-- The part of the scripts that pass a lock on: the queue, wake-ups, and the hand-over.

-- Puts the token that asks into the queue, which expires when no token has joined it for a while: the entry of a
-- process that has died must not stay for ever.
local function join_queue()
  redis.call('ZADD', queue, 0, token)
  redis.call('PEXPIRE', queue, 30000)
end

-- The larger one of two tokens.
local function later(a, b)
  return is_before(a, b) and b or a
end

-- Gives the lock to the smallest of the tokens that want it. `last` is the largest in the queue: unless it is the same
-- one, others wait, and the token gets the mark.
local function give(to, ttl, last)
  redis.call('SET', lock, (to == last) and to or to .. '+', 'PX', ttl)
end

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 when this user may not publish.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local received = redis.pcall('PUBLISH', 'redlock:' .. string.sub(to, 36 + 2), text)
  return type(received) == 'number' and received or 0
end

-- Gives the lock to the smallest token in the queue whose process listens, and returns it; frees the lock if there is
-- none. The token gets the lock as a claim of the length `claim`, and is woken. Only the token that asks gets it for
-- `own_ttl` instead, if that is given: as a lease, and without a wake-up.
local function hand_over(claim, last, own_ttl)
  while true do
    -- A queue that cannot be read counts as empty, as in `waiter`.
    local next = redis.pcall('ZPOPMIN', queue)[1]
    if not next then
      redis.call('DEL', lock)
      return nil
    elseif own_ttl and next == token then
      give(next, own_ttl, last)
      return next
    end
    local begun = redis.pcall('TIME')
    give(next, claim, last)
    if notify(next, claimed(next, claim, begun)) > 0 then
      return next
    end
  end
end
-- Leaves the queue, and passes the lock on if the token owns it.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token   ARGV[2] the lifetime of a claim, in ms
-- 1 or {1}   released (1 comes from release_alone.lua)
-- {-1}       the token does not own the lock
-- and at the end of an array the time of the newest token, if it is newer than this one
local holder, last = find_holder(), waiter(-1)
if last then
  redis.call('ZREM', queue, token)
end
if holder ~= token then
  return {-1, newest(holder, last)}
end
-- An owner that stands in its own queue has just left it, so that another one may be the last.
hand_over(ARGV[2], last == token and waiter(-1) or last)
return {1, newest(holder, last)}
