-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
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

-- The part that finds out whether somebody shares the lock, or waits to share it. Then a script goes on as readers.lua says.
-- `last` is the largest token in the queue, nil when it is empty or cannot be read; among readers it may be something else.
local last, last_class = unpack(redis.pcall('ZRANGE', queue, -1, -1, 'WITHSCORES'))
local is_among = last and last_class ~= '0'
if type(value) == 'table' then
  -- Scores of other programs are no times behind 4398046511104, as in shares.lua.
  local score = tonumber(redis.pcall('ZRANGE', lock, 0, 0, 'WITHSCORES')[2])
  if score and score >= 4398046511104 and score < 2 * 4398046511104 then
    value, is_among = false, true
  end
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
if not is_among and value == token .. '+' then
  local first = redis.pcall('ZRANGE', queue, 0, 0)[1]
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
-- The part of the scripts that wake others.

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 when this user may not publish.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local received = redis.pcall('PUBLISH', 'redlock:' .. string.sub(to, 36 + 2), text)
  return type(received) == 'number' and received or 0
end

if is_among then
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
local class = 0
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
-- The part of the scripts that pass a lock on: the queue, and the hand-over.

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
local holder = find_holder()
if last then
  redis.call('ZREM', queue, token)
end
if holder ~= token then
  return {-1, newest(holder, last)}
end
-- An owner that stands in its own queue has just left it, so that another one may be the last.
hand_over(ARGV[2], last == token and waiter(-1) or last)
return {1, newest(holder, last)}
