-- The general part of the scripts: every kind of lock, one key or several. Its state machine is protocol/node_state/sharing.rs, where the
-- rules are numbered. Each script begins with a head for the frequent cases, as creating the functions of this part takes longer than such a
-- case.
--
-- A key with a single holder is a string: the token, followed by the mark or by a letter for the class, see LETTERS. The first other command
-- that concerns such a holder of class 1 to 3 makes it a set of one member.
--
-- A shared key is a sorted set. The score of a token is its class times SHARE plus the end of its lease, in ms by the clock of the server.
-- An expired member is ignored, and the next command removes it. The key expires with its last member. The classes are:
-- - 0: exclusive;
-- - 1: shared;
-- - 2: something below the key is held exclusively;
-- - 3: something below the key is shared;
-- - 7: the key is reserved, which is not a hold.
--
-- In the queue, the score of a token is its class. SEVERAL is added if the class is 0 or 1 and the token wants other keys as well. Beside a
-- token, the queue can have a second member: the token followed by `#`. The score of this member is SHARE plus the time at which the token
-- last asked: a frozen process blocks others only for a limited time. The member with the score UNTOLD is the first waiter that must still
-- be notified that the key is free. It is followed by `>` and the scores of the waiters concerned.
--
-- `class` is the class that the calling token wants: ALONE, SHARING or one of the others. `value` is the text of the lock, false if there
-- is none. `has_several` is true if the token wants several keys. `is_among` exists in the scripts for exclusive locks: it is false if all
-- holders and waiters want the lock exclusively.
if queue == lock then
  -- In a cluster that moves the slot, KEYS has the key of the lock in place of its queue. The queue is unknown then.
  return redis.error_reply('TRYAGAIN the slot of the key is on its way')
end

-- Returns the exclusive holder of a key, false if there is none. The second result is true if the holder has the mark.
local function owner_of(text)
  if type(text) == 'table' then
    if not string.find(text.err, 'WRONGTYPE', 1, true) then
      -- This call raises the error.
      redis.call('GET', lock)
    end
    -- A key of another type is treated as taken, without a holder.
    return true, false
  elseif text and #text == TOKEN_LEN + 1 and string.sub(text, -1) == MARK then
    return string.sub(text, 1, TOKEN_LEN), true
  end
  return text, false
end
-- Refuses a user without one of these commands before anything is written. The error is returned and not raised, so that the client knows
-- that nothing was written. Another program may use the key of the queue.
local function refusal(...)
  local said = redis.pcall(...)
  return type(said) == 'table' and said.err and not string.find(said.err, 'WRONGTYPE', 1, true) and said
end
local clock = redis.pcall('TIME')
local refused = clock.err and clock or refusal('ZSCORE', queue, token) or refusal('ZCOUNT', queue, 0, 0)
if refused then
  return refused
end
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local time = '@' .. table.concat(clock, '.')

-- Returns the score of a member that ends, or last asked, at a time.
local function score(as, at)
  return string.format('%.0f', as * SHARE + at)
end

-- Raises the error of a server that refuses ZADD, because the user may not run it or the server is full and the script has not written yet.
local function check_zadd()
  local said = redis.pcall('ZADD', lock, 'XX', 0, '')
  if type(said) == 'table' and not string.find(said.err, 'WRONGTYPE', 1, true) then
    redis.call('ZADD', lock, 'XX', 0, '')
  end
end

-- Makes the string of a single holder of class 1 to 3 a set. Returns false if it has, else the text. If the holder itself leaves, it is
-- treated as an exclusive holder: the queue is empty, and the key is deleted.
local function opened(text)
  local as = type(text) == 'string' and LETTERS[string.sub(text, TOKEN_LEN + 1)]
  local who = as and string.sub(text, 1, TOKEN_LEN)
  if is_leaving and who == token then
    is_leaving = as
    return who
  end
  local left = is_token(who) and redis.call('PTTL', lock) or -1
  if left < 0 then
    -- Data, which never expires.
    return text
  end
  -- After PTTL: time that passes between the two commands must not make the lease shorter.
  local at = redis.call('TIME')
  at, left = at[1] * 1000 + math.floor(at[2] / 1000), math.max(left, 1)
  if is_leaving then
    -- This is the first write: a full server does not let a script begin with a ZADD, and a release has to work there.
    redis.call('PEXPIRE', lock, left)
  end
  -- Before the string is deleted.
  check_zadd()
  redis.call('DEL', lock)
  redis.call('ZADD', lock, score(as, at + left), who)
  if type(redis.pcall('PEXPIRE', lock, left)) == 'table' then
    -- The holder keeps its string, as a set without an expiry would stay. The second call raises the error.
    redis.call('SET', lock, text, 'PX', left)
    redis.call('PEXPIRE', lock, left)
  end
  return false
end
value = opened(value)
local owner, is_marked = owner_of(value)

-- The keys of the request. The variables above describe the current key, which `go_to` selects. Each entry records if the key is known to
-- be free, and which scores may occur in its queue: searches for other scores are skipped.
local here = {lock = lock, queue = queue, class = class, owner = owner, is_marked = is_marked}
local places = {here}
local function go_to(place)
  here.owner, here.is_marked = owner, is_marked
  here, lock, queue, class = place, place.lock, place.queue, place.class
  owner, is_marked = place.owner, place.is_marked
end

-- Selects each key in turn until `look` returns true. Returns true if one did.
local function any(look)
  for _, place in ipairs(places) do
    go_to(place)
    if look() then
      return true
    end
  end
  return false
end

-- For each class, the scores in the queue that conflict with it. Scores that are also classes of holders apply to these holders, too.
local against = {[0] = {0, 1, 2, 3, 4, 5}, {0, 2, 4}, {0, 1, 4, 5}, {0, 4}}

-- Returns the class of the waiters with a score.
local function class_of(line)
  return line < SEVERAL and line or line - SEVERAL
end

local function is_against(one, other)
  for _, line in ipairs(against[one]) do
    if line == other then
      return true
    end
  end
  return false
end

-- Returns true if a holder in the class `held` need not take the class `wanted` as well.
local function covers(held, wanted)
  return held == 0 or held == wanted or wanted == 3 and held ~= 3
end

-- Removes the members of a class that have expired. Every user may run these commands, so that no script fails halfway.
local function remove_ended(as)
  local ended = redis.call('ZRANGE', lock, score(as, 0), score(as, now), 'BYSCORE', 'LIMIT', 0, MOST_ENDED)
  if ended[1] then
    redis.call('ZREM', lock, unpack(ended))
  end
end

-- Returns the class in which a token shares the key, and the end of its lease. Returns nil if it does not share the key.
local function share_of(who)
  local at = not owner and not here.is_free and redis.call('ZSCORE', lock, who)
  if at then
    local as = math.floor(at / SHARE)
    at = at - as * SHARE
    if at > now and as < RESERVING then
      return as, at
    end
  end
end

-- Returns the class in which a token holds the key, nil if it does not.
local function hold_of(who)
  if owner == who then
    return 0
  end
  return (share_of(who))
end

-- Returns at most `most` holders of the key in a class.
local function holders(as, most)
  return (owner or here.is_free) and {} or redis.call('ZRANGE', lock, '(' .. score(as, now), '(' .. score(as + 1, 0), 'BYSCORE', 'LIMIT', 0, most)
end

-- Returns true if other tokens hold the key in a class that conflicts with the class of this token.
local function is_taken_from(who, as)
  if owner then
    return owner ~= who
  end
  for _, line in ipairs(against[as]) do
    local some = line > 0 and line < SEVERAL and holders(line, 2) or {}
    if some[1] and some[1] ~= who or some[2] then
      return true
    end
  end
  return false
end

-- Returns the earliest waiter with a score, after skipping `passed` of them.
local function first(line, passed)
  if not here.lines[line] then
    return nil
  elseif not passed or passed == 0 then
    return redis.pcall('ZRANGE', queue, line, line, 'BYSCORE', 'LIMIT', '0', '1')[1]
  end
  -- By the rank: an offset among scores is walked to.
  local at = redis.call('ZCOUNT', queue, 0, '(' .. line) + passed
  local found = redis.call('ZRANGE', queue, at, at, 'WITHSCORES')
  return tonumber(found[2]) == line and found[1] or nil
end

-- Returns the earliest waiter that conflicts with a class, and its score. Leaves out the waiters with the score `but`, if it is given.
local function first_against(as, but)
  local earliest, at
  for _, line in ipairs(against[as]) do
    local next = line ~= but and first(line)
    if next and (not earliest or is_before(next, earliest)) then
      earliest, at = next, line
    end
  end
  return earliest, at
end

-- Returns true if an earlier token waits that conflicts with the class.
local function is_behind(who, as)
  local earliest = first_against(as)
  return earliest and is_before(earliest, who)
end

-- Stores the larger one of the owner and the last token in the queue in `largest`, if that token is larger than the calling token. `seen`
-- returns its time.
local largest = token
local function note_newest()
  local last, _
  last, _, here.lines = latest()
  if is_token(owner) and is_before(largest, owner) then
    largest = owner
  end
  if last and is_before(largest, last) then
    largest = last
  end
end
note_newest()
local function seen()
  return largest ~= token and string.sub(largest, 1, TIME_LEN) or nil
end

-- Removes a token from the queue.
local function strike(who)
  -- Another program may use the key of the queue. The queue is treated as empty then.
  redis.pcall('ZREM', queue, who, who .. '#')
end

-- Removes an absent waiter with the score `line`. If its manager was known to be absent, the absent waiters right behind it are removed with
-- it, up to the waiter `other` and the first waiter with another score that conflicts with the class `as`. The result is the same as removing
-- them one by one, with fewer commands.
local function strike_gone(who, line, as, other)
  local members, rest = {who, who .. '#'}, {}
  local is_known = gone[manager_of(who)]
  count_gone(who, line)
  if is_known and line <= SHARING and budget > 0 then
    rest = redis.pcall('ZRANGE', queue, line, line, 'BYSCORE', 'LIMIT', 0, math.min(MOST_STRUCK, budget))
  end
  local limit = rest[2] and first_against(as, line)
  for _, next in ipairs(rest) do
    if next ~= who then
      if next == token or not gone[manager_of(next)] or limit and is_before(limit, next) or other and is_before(other, next) then
        break
      end
      if not share_of(next) then
        count_gone(next, line)
      end
      members[#members + 1], members[#members + 2] = next, next .. '#'
    end
  end
  if type(redis.pcall('ZREM', queue, unpack(members))) == 'table' then
    -- A user without ZREM removes no waiter: the command ends.
    budget = 0
  end
end

-- Runs a command on a key. If the user may not run it, these members are removed again: they would stay, and without an expiry for ever.
local function try(members, verb, name, ...)
  if type(redis.pcall(verb, name, ...)) == 'table' then
    redis.pcall('ZREM', name, unpack(members))
    -- This call raises the error.
    redis.call(verb, name, ...)
  end
end

-- Returns how many waiters with a score come before a token.
local function count_before(who, line)
  local least, most = 0, redis.call('ZCOUNT', queue, line, line)
  while least < most do
    local middle = math.floor((least + most) / 2)
    if is_before(first(line, middle), who) then
      least = middle + 1
    else
      most = middle
    end
  end
  return least
end

-- Adds the calling token to the queue, and records the time at which it asked. The time is left out while all holders and waiters want
-- the lock exclusively, as then no command would read it: `passes_first_over` adds it later.
local function join()
  local line = has_several and class < 2 and class + SEVERAL or class
  if line == ALONE and not is_among then
    redis.call('ZADD', queue, ALONE, token)
  else
    redis.call('ZADD', queue, line, token, score(1, now), token .. '#')
  end
  here.lines[line] = true
  try({token, token .. '#'}, 'PEXPIRE', queue, QUEUE_EXPIRY)
end

-- The classes of the members of a set.
local classes = {1, 2, 3, RESERVING}

-- Sets the expiry of the key to the end of its last holder or reservation.
local function set_expiry()
  local last
  for _, as in ipairs(classes) do
    local at = redis.call('ZRANGE', lock, '(' .. score(as + 1, 0), score(as, 0), 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
    last = at and math.max(last or 0, at - as * SHARE) or last
  end
  if last then
    redis.call('PEXPIRE', lock, last - now)
  end
end

-- Completes the set after members were added for `ttl`, when the key had `left` ms.
local function added(left, ttl)
  for _, other in ipairs(here.is_free and {} or classes) do
    remove_ended(other)
  end
  here.is_free = false
  if left > ttl + 0 then
    set_expiry()
  end
end

-- Makes a token a member of the set for `ttl`.
local function put(who, as, ttl)
  local left, new = math.max(redis.call('PTTL', lock), ttl), who
  if share_of(who) then
    -- A server that is full does not let a script begin with a ZADD, and keeps what it has.
    redis.call('PEXPIRE', lock, left)
    -- If the command fails, `who` keeps its previous share: the empty name matches no member.
    new = ''
  end
  redis.call('ZADD', lock, score(as, now + ttl), who)
  try({new}, 'PEXPIRE', lock, left)
  added(left, ttl)
end

-- Grants the key to a token for `ttl`, in a class. If the token held the key exclusively, and takes another class, its exclusive hold ends.
local function take(who, as, ttl)
  if as == ALONE then
    local waiting = redis.pcall('ZCARD', queue)
    owner, is_marked = who, type(waiting) == 'number' and waiting > 0
    redis.call('SET', lock, is_marked and who .. MARK or who, 'PX', ttl)
    return
  end
  if owner then
    -- A user without these commands must not lose the lock: they come before the DEL. The first one also makes a full server continue.
    redis.call('PEXPIRE', lock, ttl)
    check_zadd()
    redis.call('DEL', lock)
    owner, here.is_free = false, true
  end
  put(who, as, ttl)
end

-- Removes the hold and the reservation of a token. The key expires with the last remaining member.
local function drop(who)
  if owner == who then
    redis.call('DEL', lock)
    owner, here.is_free = false, true
  elseif not owner and redis.call('ZREM', lock, who) == 1 then
    set_expiry()
  end
end

-- Protects the key from a plain SET for a while, because a token wants the key and could have it.
local function reserve(who)
  if not owner and not share_of(who) then
    put(who, RESERVING, RESERVED)
  end
end

-- Hands the key to a waiter as a claim, and notifies it. A waiter whose process is gone does not get the key.
local function give_to(who, as, claim)
  strike(who)
  if gone[manager_of(who)] then
    return false
  end
  take(who, as, claim)
  local is_heard = notify(who, claimed(who, claim, clock)) > 0
  if not is_heard then
    drop(who)
  end
  return is_heard
end

-- Notifies a token that wants several keys that this one is free, and reserves the key for it.
local function nudge(who)
  local is_heard = not gone[manager_of(who)] and notify(who, 'free ' .. who .. ' ' .. lock) > 0
  if is_heard then
    reserve(who)
  end
  return is_heard
end

-- Hands the key to the first waiting readers as claims, at most `most` of them, and notifies them. They come before every waiter in conflict,
-- before the waiter `other` that is examined next, and before the token `own`, if these are given. One look at the queue and one write serve
-- all of them. A reader whose process is gone does not get the key. Returns how many were notified, and true if any is gone.
local function admit_readers(claim, most, own, other)
  local limit, struck, readers, scored = first_against(SHARING), {}, {}, {}
  for _, who in ipairs(redis.call('ZRANGE', queue, SHARING, SHARING, 'BYSCORE', 'LIMIT', 0, most)) do
    if who == own or limit and is_before(limit, who) or other and is_before(other, who) then
      break
    end
    struck[#struck + 1], struck[#struck + 2] = who, who .. '#'
    -- A waiter may have its share already: a claim would end the share early.
    if not share_of(who) then
      readers[#readers + 1] = who
      if not gone[manager_of(who)] then
        scored[#scored + 1], scored[#scored + 2] = score(SHARING, now + claim), who
      end
    end
  end
  if scored[1] then
    -- A server that is full does not let a script begin with a ZADD. The readers stay in the queue if it fails.
    redis.pcall('ZREM', queue, '')
    local left = math.max(redis.call('PTTL', lock), claim)
    redis.call('ZADD', lock, unpack(scored))
    try(readers, 'PEXPIRE', lock, left)
    added(left, claim)
  end
  redis.pcall('ZREM', queue, unpack(struck))
  local unheard = {}
  for _, who in ipairs(readers) do
    if gone[manager_of(who)] or notify(who, claimed(who, claim, clock)) == 0 then
      unheard[#unheard + 1] = who
      count_gone(who, SHARING)
    end
  end
  if unheard[1] then
    redis.call('ZREM', lock, unpack(unheard))
    set_expiry()
  end
  return #readers - #unheard, unheard[1] ~= nil
end

-- Returns the earliest one of `heads`, the next waiters by their scores, and its score. Leaves out the score `but`, and those that are kept
-- out.
local function earliest(heads, kept_out, but)
  local found, at
  for line, head in pairs(heads) do
    if head and line ~= but and not kept_out[line] and (not found or is_before(head, found)) then
      found, at = head, line
    end
  end
  return found, at
end

-- Grants the key to the waiters that can have it now, the earliest first: to one exclusive waiter, or to all compatible waiters that came
-- before the first exclusive one. The calling token gets the key for `own_ttl` if that is given: as a lease, and without a notification. A
-- waiter that wants several keys is only notified, if it conflicts with the class that has `freed` the key. If there are too many waiters
-- for one command, the next command at this key continues. Returns true if the calling token was granted the key.
local function promote(claim, own_ttl, freed)
  local has_own, steps = false, 0
  local heads, passed = {}, {[0] = 0, 0, 0, 0, 0, 0}
  -- A token that blocks the first waiter of a score blocks all later waiters with this score.
  local kept_out = {}
  -- The scores whose waiters are examined.
  local looked_at = {[0] = true, true}
  local function free(as)
    for _, line in ipairs(against[as]) do
      looked_at[line], kept_out[line] = true, nil
    end
  end
  if freed then
    free(freed)
  end
  -- The waiters that must still be notified, if any.
  local rest = first(UNTOLD)
  if rest then
    redis.call('ZREM', queue, rest)
    for line in string.gmatch(string.sub(rest, TOKEN_LEN + 2), '%d') do
      line = tonumber(line)
      if not looked_at[line] then
        looked_at[line], passed[line] = true, count_before(string.sub(rest, 1, TOKEN_LEN), line)
      end
    end
  end
  -- The number of turns is limited: a user without ZREM removes no waiter.
  for turn = 1, MOST_TURNS do
    if owner then
      break
    elseif turn == MOST_TURNS then
      budget = 0
    end
    for other in pairs(looked_at) do
      if heads[other] == nil then
        heads[other] = first(other, passed[other]) or false
      end
    end
    local next, line = earliest(heads, kept_out)
    if not next then
      break
    elseif steps == MOST_STEPS or budget <= 0 then
      local lines = ''
      for other = 2, LAST_LINE do
        local is_left = looked_at[other] and not kept_out[other] and redis.call('ZCOUNT', queue, other, other) > 0
        lines = lines .. (is_left and other or '')
      end
      if lines ~= '' then
        redis.call('ZADD', queue, UNTOLD, next .. '>' .. lines)
        here.lines[UNTOLD] = true
      end
      break
    end
    local as = class_of(line)
    heads[line] = nil
    if share_of(next) then
      -- The waiter has its share already: a claim would end the share early.
      strike(next)
    elseif is_taken_from(next, as) or is_behind(next, as) then
      kept_out[line] = true
      if as == ALONE then
        -- All other waiters came later, and conflict with this one.
        break
      end
    elseif line >= 2 then
      if next == token or nudge(next) then
        if as == ALONE then
          break
        end
        steps, passed[line] = steps + 1, passed[line] + 1
      else
        strike_gone(next, line, as)
        free(as)
      end
    elseif own_ttl and next == token then
      has_own = true
      strike(next)
      take(next, as, own_ttl)
    elseif line == SHARING and not gone[manager_of(next)] then
      local heard, is_any_gone = admit_readers(claim, math.min(MOST_STEPS - steps, math.ceil(budget / FINDING_COST)), own_ttl and token, earliest(heads, kept_out, line))
      steps = steps + heard
      if is_any_gone then
        free(as)
      end
    elseif give_to(next, as, claim) then
      steps = steps + 1
    else
      strike_gone(next, line, as, earliest(heads, kept_out, line))
      free(as)
    end
  end
  return has_own
end

-- `is_held`: other tokens hold the key in a conflicting class. `is_late`: an earlier waiter conflicts.
local function is_held()
  return is_taken_from(token, class)
end
local function is_late()
  return is_behind(token, class)
end

-- Returns the time in ms until the last of the conflicting keys expires, or the last of all keys if none conflicts. After an unfinished
-- command it is 0: the caller asks again.
local function longest_left()
  if budget <= 0 then
    return 0
  end
  local held, all = nil, -2
  any(function()
    local left = redis.call('PTTL', lock)
    all = math.max(all, left)
    if is_held() then
      held = math.max(held or -2, left)
    end
  end)
  return held or all
end

-- Returns true if the key holds data of another program, which is never released.
local function is_data()
  return owner == true or redis.call('PTTL', lock) == -1
end

-- Grants all keys to the calling token. A key that was downgraded before stays downgraded.
local function take_all(ttl, claim)
  any(function()
    here.waited = redis.pcall('ZSCORE', queue, token)
    if here.waited then
      -- This is the first write: a full server refuses it, and lets a script continue that has begun to write.
      strike(token)
    end
    local held = share_of(token)
    if owner == token and class == ALONE then
      redis.call('PEXPIRE', lock, ttl)
    else
      take(token, held and not covers(held, class) and held or class, ttl)
    end
  end)
  any(function()
    if class == SHARING or share_of(token) == SHARING or here.waited and first(UNTOLD) then
      promote(claim)
    end
  end)
end

-- Removes the first waiter if it alone blocks the calling token, and its process is gone or silent. Returns true if the waiter was removed.
-- If others were removed before it, a waiter for several keys is notified that the key is free: it may be the first only since then.
local function passes_first_over(has_passed)
  local next, line = first_against(class)
  if is_held() or not next or not is_before(next, token) then
    return
  end
  local text = has_passed and line > SHARING and 'free ' .. next or 'contended ' .. next .. ' ' .. token
  if gone[manager_of(next)] or notify(next, text .. ' ' .. lock) == 0 then
    strike_gone(next, line, class, token)
    return true
  end
  local heard = redis.call('ZSCORE', queue, next .. '#')
  local at = heard and heard - SHARE
  if at and at < now - SILENT_AFTER then
    strike(next)
    budget = budget - FINDING_COST
    return true
  elseif not at or at > now then
    -- The waiter came before the key was shared, or the clock was set back since it last asked.
    redis.call('ZADD', queue, score(1, now), next .. '#')
  end
end

-- Repeats this with the next waiters, until one of them is alive. Returns true if any waiter was removed.
local function passes_over()
  local has_passed = false
  while budget > 0 and passes_first_over(has_passed) do
    has_passed = true
  end
  return has_passed
end
