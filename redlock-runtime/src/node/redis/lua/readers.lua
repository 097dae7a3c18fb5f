-- The part of the scripts for locks that tokens may have together, as readers, or wait for to have so. Its state machine is
-- protocol/node_state/sharing.rs, where the rules are numbered.
--
-- The lock of readers is a sorted set: the score of a token is SHARE plus the time at which its lease ends, in ms by the clock
-- of the server. One whose time is over counts no more, and is not there any more when the next one gets a share. The key
-- expires with the last of them.
-- In the queue, the score of a token is ALONE or SHARING. Beside it stands the token with a `#` behind it, of which the score is
-- SHARE plus the time at which the token was heard of: whose process is frozen keeps no readers out for long.
--
-- `class` is what the token that asks wants to be: ALONE or SHARING. `value` is the text of the lock; false when there is none.
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
elseif value and #value == TOKEN_LEN + 1 and string.sub(value, -1) == MARK then
  owner, is_marked = string.sub(value, 1, TOKEN_LEN), true
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local time = '@' .. table.concat(clock, '.')

-- The score of what ends, or was heard of, at a time.
local function score(at)
  return string.format('%.0f', SHARE + at)
end

-- When the share of a token ends; nil when it has none.
local function end_of(who)
  local at = not owner and redis.call('ZSCORE', lock, who)
  at = at and at - SHARE
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
  local writer, reader = first(ALONE), class == ALONE and first(SHARING)
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
  return largest ~= token and string.sub(largest, 1, TIME_LEN) or nil
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
  expire(queue, QUEUE_EXPIRY, token, token .. '#')
end

-- The key of readers expires with the last of them.
local function expire_with_the_last()
  local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2]
  if last then
    redis.call('PEXPIRE', lock, last - SHARE - now)
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
  redis.call('ZREMRANGEBYSCORE', lock, SHARE, score(now))
  if left > ttl + 0 then
    expire_with_the_last()
  end
end

-- A token has the lock for `ttl`, as a class.
local function take(who, as, ttl)
  if as == SHARING then
    return share(who, ttl)
  end
  local waiting = redis.pcall('ZCARD', queue)
  owner, is_marked = who, type(waiting) == 'number' and waiting > 0
  redis.call('SET', lock, is_marked and who .. MARK or who, 'PX', ttl)
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
  for _ = 1, MOST_GONE do
    if let_in == MOST_STEPS then
      break
    end
    local writer, reader = first(ALONE), first(SHARING)
    local next, as
    if not owner and reader and (not writer or is_before(reader, writer)) then
      next, as = reader, SHARING
    elseif not owner and writer and not readers(1)[1] then
      next, as = writer, ALONE
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
  local writer = class == SHARING and not owner and first(ALONE)
  if not writer or not is_before(writer, token) then
    return false
  end
  local received = notify(writer, 'contended ' .. writer .. ' ' .. token .. ' ' .. lock)
  local heard = redis.call('ZSCORE', queue, writer .. '#')
  if received == 0 or heard and heard - SHARE < now - SILENT_AFTER then
    strike(writer)
    return true
  elseif not heard then
    -- It has come before anybody wanted to share the lock.
    redis.call('ZADD', queue, score(now), writer .. '#')
  end
  return false
end

