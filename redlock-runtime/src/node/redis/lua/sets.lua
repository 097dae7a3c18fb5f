-- The part of the scripts for several keys that reads the other keys.
here.is_free = value == nil
for at = 2, #wanted do
  here.owner, here.is_marked = owner, is_marked
  lock, queue, class = KEYS[2 * at - 1], KEYS[2 * at], tonumber(string.sub(wanted, at, at))
  value = opened(value_of(lock))
  owner, is_marked = owner_of(value)
  here = {lock = lock, queue = queue, class = class, owner = owner, is_marked = is_marked, is_free = value == nil}
  places[at] = here
  note_newest()
end

