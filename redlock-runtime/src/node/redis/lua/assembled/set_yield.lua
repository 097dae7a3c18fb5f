-- Generated: this is what the server gets, without the comments, put together of the parts in the folder above. To write
-- it anew:
-- UPDATE_EXPECT=1 cargo test -p redlock-runtime --lib assembled

-- The part that every script begins with. Names in capitals other than KEYS and ARGV are constants: script.rs puts their
-- values in.
-- KEYS[1] the lock   KEYS[2] its queue   ARGV[1] the token that asks
local lock, queue, token = KEYS[1], KEYS[2], ARGV[1]
local wanted = ARGV[#ARGV]
-- The part that tells the set of the readers of a key from a set of another program.

-- Returns true if the first member of a set, given with its score, was written by these scripts. Scores of other programs, such as times in
-- seconds, milliseconds or microseconds, are not times after 4398046511104.
local function are_ours(first)
  local score = tonumber(first[2])
  return score ~= nil and score >= 4398046511104 and score < (7 + 1) * 4398046511104
end

-- Returns true if all members are readers of the key. The last member decides, because holders of other classes have larger scores.
local function are_readers(last)
  return are_ours(last) and tonumber(last[2]) < 2 * 4398046511104
end
-- The part that reads a key which may be shared. Returns nil if the key is free and false if it is shared. Returns a table for a set of
-- another program, like for a key of another type.
local function value_of(name)
  local found = redis.pcall('ZRANGE', name, 0, 0, 'WITHSCORES')
  if not found.err then
    return found[1] and not are_ours(found) and redis.pcall('GET', name)
  elseif string.find(found.err, 'WRONGTYPE', 1, true) then
    return redis.pcall('GET', name)
  end
  -- This call raises the error.
  return redis.call('ZRANGE', name, 0, 0)
end
local value = value_of(lock)
-- The part of the scripts that recognizes tokens and compares them.

-- Prefix of the names of channels.
local channels = 'redlock::'

-- Returns true if a value is a token. Values of other programs contain neither a time nor a channel, and must not be changed.
local function is_token(value)
  return type(value) == 'string' and #value == 60
    and string.find(value, '^%x+%-%x%x%x%x%-7%x%x%x%-%x%x%x%x%-%x+@%x+$') ~= nil
    and string.sub(value, 36 + 1, 36 + 1) == '@'
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

-- The part of the scripts that formats the announcement of a hand-off.

-- Returns the text that notifies a process: its token now holds the lock as a claim of `claim` ms. The claim began at `begun`, the reply to
-- TIME from before the key was set. The times are missing for managers of older versions, and for a user without TIME.
local function claimed(to, claim, begun)
  if begun[2] and string.byte(to, 50) == 56 then
    return 'claimed ' .. claim .. ' ' .. begun[1] .. '.' .. begun[2] .. ' ' .. to .. ' ' .. lock
  end
  return 'granted ' .. to .. ' ' .. lock
end

-- The part of the scripts that notify other processes.

-- Publishes a text to the manager of a token. Returns how many processes received it: 0 if this user may not publish.
--
-- A client that subscribes to a pattern is one of the receivers. With not 'patterns', these clients are subtracted: they receive an empty
-- text on a channel to which no client subscribes by its name.
local function notify(to, text)
  if not is_token(to) then
    return 0
  end
  local channel = channels .. string.sub(to, 36 + 2)
  local received = redis.pcall('PUBLISH', channel, text)
  if type(received) ~= 'number' then
    return 0
  end
  return not 'patterns' and received - redis.call('PUBLISH', channel .. '-', '') or received
end

-- The part of the scripts that removes waiters whose processes are gone; see protocol/node_state/gone.rs.

-- The managers that do not listen, as this command has found; and how many more absent waiters it may look at. When it may look at
-- none, the command is unfinished: the reply asks the client to send it again.
local gone, looks = {}, 128
local function manager_of(who)
  return string.sub(who, 36 + 2)
end

-- Removes an absent waiter, and those of all absent managers among the next waiters with the same score; but not the token that asks.
local function strike_gone(who, line)
  local members = {who, who .. '#'}
  gone[manager_of(who)], looks = true, looks - 1
  for _, other in ipairs(redis.pcall('ZRANGE', queue, line, line, 'BYSCORE', 'LIMIT', 0, 128)) do
    if gone[manager_of(other)] and other ~= token then
      members[#members + 1], members[#members + 2] = other, other .. '#'
    end
  end
  redis.pcall('ZREM', queue, unpack(members))
end
local class, has_several = tonumber(string.sub(wanted, 1, 1)), true
-- The part of the scripts that finds the token that came last.

-- Returns three values. First, the largest token in the queue, nil if the queue is empty or cannot be read. Second, true if a member of the
-- queue shares the lock, wants several keys, or has asked for a key that is shared: such members have a score above 0. Third, a table
-- of the scores that may occur in the queue.
local function latest()
  local last, class = unpack(redis.pcall('ZRANGE', queue, '-1', '-1', 'WITHSCORES'))
  if not last or class == '0' then
    return last, false, {[0] = last}
  end
  local largest, line, lines = nil, 5, {[8796093022208] = true}
  while line >= 0 do
    local last, found = unpack(redis.pcall('ZRANGE', queue, line, '0', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES'))
    -- Another program may use the key, with other scores.
    line = tonumber(found or -1)
    if last and line % 1 == 0 then
      lines[line] = true
      if not largest or is_before(largest, last) then
        largest = last
      end
    end
    line = math.ceil(line) - 1
  end
  return largest, true, lines
end
-- The part of the scripts for keys that tokens share or want to share, and for requests of several keys. Its state machine is
-- protocol/node_state/sharing.rs, where the rules are numbered.
--
-- A shared key is a sorted set. The score of a token is its class times 4398046511104 plus the end of its lease, in ms by the clock of the server.
-- An expired member is ignored, and the next command removes it. The key expires with its last member. The classes are:
-- - 0: exclusive;
-- - 1: shared;
-- - 2: something below the key is held exclusively;
-- - 3: something below the key is shared;
-- - 7: the key is reserved, which is not a hold.
--
-- In the queue, the score of a token is its class. 4 is added if the class is 0 or 1 and the token wants other keys as well. Beside a
-- token, the queue can have a second member: the token followed by `#`. The score of this member is 4398046511104 plus the time at which the token
-- last asked: a frozen process blocks others only for a limited time. The member with the score 8796093022208 is the first waiter that must still
-- be notified that the key is free. It is followed by `>` and the scores of the waiters concerned.
--
-- `class` is the class that the calling token wants: 0, 1 or one of the others. `value` is the text of the lock, false if there
-- is none. `has_several` is true if the token wants several keys.
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
  elseif text and #text == 60 + 1 and string.sub(text, -1) == '+' then
    return string.sub(text, 1, 60), true
  end
  return text, false
end
local owner, is_marked = owner_of(value)

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
  return line < 4 and line or line - 4
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

-- Returns the score of a member that ends, or last asked, at a time.
local function score(as, at)
  return string.format('%.0f', as * 4398046511104 + at)
end

-- Removes the members of a class that have expired. Every user may run these commands, so that no script fails halfway.
local function remove_ended(as)
  local ended = redis.call('ZRANGE', lock, score(as, 0), score(as, now), 'BYSCORE', 'LIMIT', 0, 1000)
  if ended[1] then
    redis.call('ZREM', lock, unpack(ended))
  end
end

-- Returns the class in which a token shares the key, and the end of its lease. Returns nil if it does not share the key.
local function share_of(who)
  local at = not owner and not here.is_free and redis.call('ZSCORE', lock, who)
  if at then
    local as = math.floor(at / 4398046511104)
    at = at - as * 4398046511104
    if at > now and as < 7 then
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
    local some = line > 0 and line < 4 and holders(line, 2) or {}
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

-- Returns the earliest waiter that conflicts with a class, and its score.
local function first_against(as)
  local earliest, at
  for _, line in ipairs(against[as]) do
    local next = first(line)
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
  return largest ~= token and string.sub(largest, 1, 18) or nil
end

-- Removes a token from the queue.
local function strike(who)
  -- Another program may use the key of the queue. The queue is treated as empty then.
  redis.pcall('ZREM', queue, who, who .. '#')
end

-- Runs a command on a key. If the user may not run it, `who` is removed again: it would stay, and without an expiry for ever.
local function try(who, verb, name, ...)
  if type(redis.pcall(verb, name, ...)) == 'table' then
    redis.pcall('ZREM', name, who, who .. '#')
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

-- Adds the calling token to the queue, and records the time at which it asked.
local function join()
  local line = has_several and class < 2 and class + 4 or class
  redis.call('ZADD', queue, line, token, score(1, now), token .. '#')
  here.lines[line] = true
  try(token, 'PEXPIRE', queue, 30000)
end

-- The classes of the members of a set.
local classes = {1, 2, 3, 7}

-- Sets the expiry of the key to the end of its last holder or reservation.
local function set_expiry()
  local last
  for _, as in ipairs(classes) do
    local at = redis.call('ZRANGE', lock, '(' .. score(as + 1, 0), score(as, 0), 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
    last = at and math.max(last or 0, at - as * 4398046511104) or last
  end
  if last then
    redis.call('PEXPIRE', lock, last - now)
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
  try(new, 'PEXPIRE', lock, left)
  for _, other in ipairs(here.is_free and {} or classes) do
    remove_ended(other)
  end
  here.is_free = false
  if left > ttl + 0 then
    set_expiry()
  end
end

-- Grants the key to a token for `ttl`, in a class. If the token held the key exclusively, and takes another class, its exclusive hold ends.
local function take(who, as, ttl)
  if as == 0 then
    local waiting = redis.pcall('ZCARD', queue)
    owner, is_marked = who, type(waiting) == 'number' and waiting > 0
    redis.call('SET', lock, is_marked and who .. '+' or who, 'PX', ttl)
    return
  end
  if owner then
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
    put(who, 7, 2000)
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
  local rest = first(8796093022208)
  if rest then
    redis.call('ZREM', queue, rest)
    for line in string.gmatch(string.sub(rest, 60 + 2), '%d') do
      line = tonumber(line)
      if not looked_at[line] then
        looked_at[line], passed[line] = true, count_before(string.sub(rest, 1, 60), line)
      end
    end
  end
  while true do
    if owner then
      break
    end
    local next, line
    for other in pairs(looked_at) do
      if heads[other] == nil then
        heads[other] = first(other, passed[other]) or false
      end
      if heads[other] and not kept_out[other] and (not next or is_before(heads[other], next)) then
        next, line = heads[other], other
      end
    end
    if not next then
      break
    elseif steps == 64 or looks <= 0 then
      local lines = ''
      for other = 2, 5 do
        lines = lines .. (looked_at[other] and not kept_out[other] and other or '')
      end
      if lines ~= '' then
        redis.call('ZADD', queue, 8796093022208, next .. '>' .. lines)
        here.lines[8796093022208] = true
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
      if as == 0 then
        -- All other waiters came later, and conflict with this one.
        break
      end
    elseif line >= 2 then
      if next == token or nudge(next) then
        if as == 0 then
          break
        end
        steps, passed[line] = steps + 1, passed[line] + 1
      else
        strike_gone(next, line)
        free(as)
      end
    elseif own_ttl and next == token then
      has_own = true
      strike(next)
      take(next, as, own_ttl)
    elseif give_to(next, as, claim) then
      steps = steps + 1
    else
      strike_gone(next, line)
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
  if looks <= 0 then
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
    if owner == token and class == 0 then
      redis.call('PEXPIRE', lock, ttl)
    else
      take(token, held and not covers(held, class) and held or class, ttl)
    end
  end)
  any(function()
    if class == 1 or share_of(token) == 1 or here.waited and first(8796093022208) then
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
  local text = has_passed and line > 1 and 'free ' .. next or 'contended ' .. next .. ' ' .. token
  if gone[manager_of(next)] or notify(next, text .. ' ' .. lock) == 0 then
    strike_gone(next, line)
    return true
  end
  local heard = redis.call('ZSCORE', queue, next .. '#')
  local at = heard and heard - 4398046511104
  if at and at < now - 3000 then
    strike(next)
    looks = looks - 1
    return true
  elseif not at or at > now then
    -- The waiter came before the key was shared, or the clock was set back since it last asked.
    redis.call('ZADD', queue, score(1, now), next .. '#')
  end
end

-- Repeats this with the next waiters, until one of them is alive. Returns true if any waiter was removed.
local function passes_over()
  local has_passed = false
  while looks > 0 and passes_first_over(has_passed) do
    has_passed = true
  end
  return has_passed
end
-- The part of the scripts for several keys that reads the other keys.
here.is_free = value == nil
for at = 2, #wanted do
  here.owner, here.is_marked = owner, is_marked
  lock, queue, class = KEYS[2 * at - 1], KEYS[2 * at], tonumber(string.sub(wanted, at, at))
  value = value_of(lock)
  owner, is_marked = owner_of(value)
  here = {lock = lock, queue = queue, class = class, owner = owner, is_marked = is_marked, is_free = value == nil}
  places[at] = here
  note_newest()
end

-- yield.lua for shared locks and for several keys, with the same arguments and replies.
local claim, to = ARGV[2], ARGV[3]
local function has_it()
  local held = hold_of(token)
  return held and covers(held, class)
end
if any(function() return not has_it() end) then
  return {-1, seen()}
end
-- Returns the score with which the named token waits for the key.
local function line_of_it()
  return to ~= '' and tonumber(redis.call('ZSCORE', queue, to) or nil)
end
local is_named = any(line_of_it)
if not is_named then
  to = ''
  if not any(is_late) then
    return {1, seen()}
  end
end
local left
any(function()
  -- Another program may use the key of the queue. This call raises the error, before any key is handed off.
  redis.call('ZCARD', queue)
  local _, ends = share_of(token)
  local rest = ends and ends - now or redis.call('PTTL', lock)
  left = math.max(math.min(left or rest, rest), 1)
end)
any(function()
  drop(token)
  join()
end)
local is_own, is_left_to_it = false, false
any(function()
  local line, own_ttl = line_of_it(), not has_several and left or nil
  -- Other holders of the key have to yield to this token as well, and must not let each other in before.
  if line and line < 2 and is_taken_from(to, line) or line and line >= 2 and nudge(to) then
    is_left_to_it = true
    return
  end
  if line and line >= 2 then
    strike(to)
  elseif line then
    give_to(to, line, claim)
  end
  is_own = promote(claim, own_ttl, class)
end)
if has_several and not is_left_to_it and not any(function() return is_held() or is_late() end) then
  take_all(left, claim)
  is_own = true
end
if is_own then
  return {1, seen()}
end
return {0, longest_left(), seen()}
