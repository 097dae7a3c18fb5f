-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
-- The part that tells the set of readers from that of another program.

-- Whether the first member of a set, with its score, has a share. Scores of others, such as times in seconds, milliseconds or
-- microseconds, are no times behind 4398046511104.
local function are_readers(first)
  local score = tonumber(first[2])
  return score ~= nil and score >= 4398046511104 and score < 2 * 4398046511104
end
-- The part that reads the lock for those who share it: false when readers have it, or nobody; a table for the set of another
-- program, as for a key of another type.
local value = redis.pcall('ZRANGE', lock, 0, 0, 'WITHSCORES')
if not value.err then
  value = value[1] and not are_readers(value) and redis.pcall('GET', lock)
elseif string.find(value.err, 'WRONGTYPE', 1, true) then
  value = redis.pcall('GET', lock)
else
  -- This call raises the error.
  redis.call('ZRANGE', lock, 0, 0)
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

-- The part of the scripts that wake others.

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 when this user may not publish.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local received = redis.pcall('PUBLISH', 'redlock:' .. string.sub(to, 36 + 2), text)
  return type(received) == 'number' and received or 0
end

-- The beginning of release.lua among readers, for a user who may not ask for the time or for scores: what the token has is given
-- back, and those who wait find that out when they ask again.
if redis.pcall('TIME').err or type(redis.pcall('ZSCORE', queue, token)) == 'table' then
  -- Something else may have the name of the queue.
  redis.pcall('ZREM', queue, token, token .. '#')
  local is_ours = value == token or value == token .. '+'
  if is_ours and redis.call('DEL', lock) == 1 or not value and redis.call('ZREM', lock, token) == 1 then
    return {1}
  end
  return {-1}
end
local class = 1
-- The part of the scripts that look who has come last.

-- The largest token in the queue, nil when it is empty or cannot be read; and whether anybody in it shares the lock, or has
-- asked for one that somebody shares: those stand behind the others.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
  if not last or class == '0' then
    return last, false
  end
  local writer = redis.pcall('ZRANGE', queue, 0, 0, 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  local reader = redis.pcall('ZRANGE', queue, 1, 1, 'BYSCORE', 'REV', 'LIMIT', 0, 1)[1]
  if writer and reader then
    return is_before(writer, reader) and reader or writer, true
  end
  return writer or reader, true
end

-- The part of the scripts for locks that tokens may have together, as readers, or wait for to have so. Its state machine is
-- protocol/node_state/sharing.rs, where the rules are numbered.
--
-- The lock of readers is a sorted set: the score of a token is 4398046511104 plus the time at which its lease ends, in ms by the clock
-- of the server. One whose time is over counts no more, and is not there any more when the next one gets a share. The key
-- expires with the last of them.
-- In the queue, the score of a token is 0 or 1. Beside it stands the token with a `#` behind it, of which the score is
-- 4398046511104 plus the time at which the token was heard of: whose process is frozen keeps no readers out for long.
--
-- `class` is what the token that asks wants to be: 0 or 1. `value` is the text of the lock; false when there is none.
if queue == lock then
  -- A cluster that moves the slot is given the name of the lock in place of its queue, which says nothing then.
  return redis.error_reply('TRYAGAIN the slot of the key is on its way')
end
local owner, is_marked = value, false
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE', 1, true) then
    -- This call raises the error.
    redis.call('GET', lock)
  end
  -- A key of another type, which counts as taken and is nobody's.
  owner = true
elseif value and #value == 69 + 1 and string.sub(value, -1) == '+' then
  owner, is_marked = string.sub(value, 1, 69), true
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local time = '@' .. table.concat(clock, '.')

-- The score of what ends, or was heard of, at a time.
local function score(at)
  return string.format('%.0f', 4398046511104 + at)
end

-- When the share of a token ends; nil when it has none.
local function end_of(who)
  local at = not owner and redis.call('ZSCORE', lock, who)
  at = at and at - 4398046511104
  return at and at > now and at or nil
end

-- Those who have shares, at most so many.
local function readers(most)
  return owner and {} or redis.call('ZRANGE', lock, '(' .. score(now), '+inf', 'BYSCORE', 'LIMIT', 0, most)
end

-- The earliest of those who wait as a class. A queue that cannot be read, because something else has its name, counts as empty.
local function first(as)
  return redis.pcall('ZRANGE', queue, as, as, 'BYSCORE', 'LIMIT', 0, 1)[1]
end

-- Whether an earlier token waits that does not go with the one that asks.
local function is_behind()
  local writer, reader = first(0), class == 0 and first(1)
  return writer and is_before(writer, token) or reader and is_before(reader, token)
end

-- The time in the larger one of the owner and the last in the queue, when that is larger than the token that asks.
local function newest()
  local last, largest = latest(), token
  if is_token(owner) and is_before(largest, owner) then
    largest = owner
  end
  if last and is_before(largest, last) then
    largest = last
  end
  return largest ~= token and string.sub(largest, 1, 18) or nil
end
local seen = newest()

-- Takes a token out of the queue.
local function strike(who)
  -- Something else may have the name of the queue, which counts as empty then.
  redis.pcall('ZREM', queue, who, who .. '#')
end

-- Gives a name an expiry, and takes the members out again when the user may not do that: what never expires would stay.
local function expire(name, ms, ...)
  if type(redis.pcall('PEXPIRE', name, ms)) == 'table' then
    redis.pcall('ZREM', name, ...)
    -- This call raises the error.
    redis.call('PEXPIRE', name, ms)
  end
end

-- Puts the token that asks into the queue, and notes that it was heard of.
local function join()
  redis.call('ZADD', queue, class, token, score(now), token .. '#')
  expire(queue, 30000, token, token .. '#')
end

-- The key of readers expires with the last of them.
local function expire_with_the_last()
  local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2]
  if last then
    redis.call('PEXPIRE', lock, last - 4398046511104 - now)
  end
end

-- A token has a share for `ttl`. If it had the lock alone, it has not any more.
local function share(who, ttl)
  if owner then
    redis.call('DEL', lock)
    owner = false
  end
  local left = redis.call('PTTL', lock)
  redis.call('ZADD', lock, score(now + ttl), who)
  -- Before anything that this user may not do: what never expires would stay.
  expire(lock, math.max(left, ttl), who)
  redis.call('ZREMRANGEBYSCORE', lock, 4398046511104, score(now))
  if left > ttl + 0 then
    expire_with_the_last()
  end
end

-- A token has the lock for `ttl`, as a class.
local function take(who, as, ttl)
  if as == 1 then
    return share(who, ttl)
  end
  local waiting = redis.pcall('ZCARD', queue)
  owner, is_marked = who, type(waiting) == 'number' and waiting > 0
  redis.call('SET', lock, is_marked and who .. '+' or who, 'PX', ttl)
end

-- A token does not have the lock any more. The key of readers expires with the last of those who are left.
local function drop(who)
  if owner == who then
    redis.call('DEL', lock)
    owner = false
  elseif not owner and redis.call('ZREM', lock, who) == 1 then
    expire_with_the_last()
  end
end

-- Gives the lock to a token of the queue as a claim, and wakes it. Whose process is gone does not get it.
local function give_to(who, as, claim)
  strike(who)
  take(who, as, claim)
  local is_heard = notify(who, claimed(who, claim, clock)) > 0
  if not is_heard then
    drop(who)
  end
  return is_heard
end

-- Gives the lock to those in the queue who can have it now, the earliest first: to one that wants it alone, or to all those
-- together who share it and have come before that one. The token that asks gets it for `own_ttl`, if that is given: as a lease,
-- and without a wake-up. Returns whether it was among them.
local function promote(claim, own_ttl)
  local has_own, let_in = false, 0
  for _ = 1, 1024 do
    if let_in == 64 then
      break
    end
    local writer, reader = first(0), first(1)
    local next, as
    if not owner and reader and (not writer or is_before(reader, writer)) then
      next, as = reader, 1
    elseif not owner and writer and not readers(1)[1] then
      next, as = writer, 0
    else
      break
    end
    if end_of(next) then
      -- It has its share already: a claim would end that early.
      strike(next)
    elseif own_ttl and next == token then
      has_own = true
      strike(next)
      take(next, as, own_ttl)
    elseif give_to(next, as, claim) then
      let_in = let_in + 1
    end
  end
  return has_own
end

-- Passes the first writer over that alone keeps the token from sharing the lock, when nobody is there who could take it.
local function passes_a_writer_over()
  local writer = class == 1 and not owner and first(0)
  if not writer or not is_before(writer, token) then
    return false
  end
  local received = notify(writer, 'contended ' .. writer .. ' ' .. token .. ' ' .. lock)
  local heard = redis.call('ZSCORE', queue, writer .. '#')
  if received == 0 or heard and heard - 4398046511104 < now - 3000 then
    strike(writer)
    return true
  elseif not heard then
    -- It has come before anybody wanted to share the lock.
    redis.call('ZADD', queue, score(now), writer .. '#')
  end
  return false
end

-- The part of permit_release.lua that tells whoever stands in the turnstile, before the rest of it, which is that of any share.
-- KEYS[3] the turnstile
local turn = end_of(token) and redis.pcall('GET', KEYS[3])
if type(turn) == 'string' then
  local by = string.sub(turn, 1, 69)
  notify(by, 'freed ' .. by .. ' ' .. KEYS[3])
end
-- release.lua among readers, with the same arguments and replies. Whoever only waited lets those in, too, who were behind it.
local claim = ARGV[2]
-- Something else may have the name of the queue.
local left_queue = redis.pcall('ZREM', queue, token, token .. '#')
local was_waiting = type(left_queue) == 'number' and left_queue > 0
local is_ours = owner == token or end_of(token)
drop(token)
if is_ours or was_waiting then
  promote(claim)
end
return {is_ours and 1 or -1, seen}
