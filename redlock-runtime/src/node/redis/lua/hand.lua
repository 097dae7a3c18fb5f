-- The part of the scripts that hand a lock off: the queue, and the hand-off.

-- Adds the calling token to the queue. The queue expires when no token has joined it for a while: the entry of a dead process must not stay
-- for ever.
local function join_queue()
  redis.call('ZADD', queue, 0, token)
  redis.call('PEXPIRE', queue, QUEUE_EXPIRY)
end

-- Returns the larger one of two tokens.
local function later(a, b)
  return is_before(a, b) and b or a
end

-- Grants the lock to the smallest of the tokens that want it. `last` is the largest token in the queue. If it is another token, others
-- wait, and the new holder gets the mark.
local function give(to, ttl, last)
  redis.call('SET', lock, (to == last) and to or to .. MARK, 'PX', ttl)
end

-- Hands the lock to the smallest token in the queue whose process listens, and returns this token. Frees the lock if there is none. The
-- token gets the lock as a claim of the length `claim`, and is notified. The calling token is an exception: if `own_ttl` is given, it gets
-- the lock as a lease of this length, without a notification. An unfinished command leaves the lock free.
local function hand_over(claim, last, own_ttl)
  while looks > 0 do
    -- A queue that cannot be read is treated as empty, like in `waiter`.
    local next = redis.pcall('ZPOPMIN', queue)[1]
    if not next then
      redis.call('DEL', lock)
      return nil
    elseif own_ttl and next == token then
      give(next, own_ttl, last)
      return next
    end
    if not gone[manager_of(next)] then
      local begun = redis.pcall('TIME')
      give(next, claim, last)
      if notify(next, claimed(next, claim, begun)) > 0 then
        return next
      end
    end
    strike_gone(next, ALONE)
    last = waiter(-1)
  end
  redis.call('DEL', lock)
end

-- Returns the remaining lease of the holder in ms. After an unfinished command it is 0: the caller asks again.
local function left_of_holder()
  return looks > 0 and redis.call('PTTL', lock) or 0
end
