-- The part of the scripts that pass a lock on: the queue, and the hand-over.

-- Puts the token that asks into the queue, which expires when no token has joined it for a while: the entry of a
-- process that has died must not stay for ever.
local function join_queue()
  redis.call('ZADD', queue, 0, token)
  redis.call('PEXPIRE', queue, QUEUE_EXPIRY)
end

-- The larger one of two tokens.
local function later(a, b)
  return is_before(a, b) and b or a
end

-- Gives the lock to the smallest of the tokens that want it. `last` is the largest in the queue: unless it is the same
-- one, others wait, and the token gets the mark.
local function give(to, ttl, last)
  redis.call('SET', lock, (to == last) and to or to .. MARK, 'PX', ttl)
end

-- Gives the lock to the smallest token in the queue whose process listens, and returns it; frees the lock if there is
-- none. The token gets the lock as a claim of the length `claim`, and is woken. Only the token that asks gets it for
-- `own_ttl` instead, if that is given: as a lease, and without a wake-up. An unfinished command leaves the lock free.
local function hand_over(claim, last, own_ttl)
  while looks > 0 do
    -- A queue that cannot be read counts as empty, as in `waiter`.
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

-- How much is left of the lease of the holder, in ms. After an unfinished command it is 0: the caller asks again.
local function left_of_holder()
  return looks > 0 and redis.call('PTTL', lock) or 0
end
