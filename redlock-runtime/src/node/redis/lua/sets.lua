-- The part of the scripts for several names that goes on with the others.
for at = 2, #wanted do
  here.owner, here.is_marked = owner, is_marked
  lock, queue, class = KEYS[2 * at - 1], KEYS[2 * at], tonumber(string.sub(wanted, at, at))
  owner, is_marked = owner_of(value_of(lock))
  here = {lock = lock, queue = queue, class = class, owner = owner, is_marked = is_marked}
  places[at] = here
  note_newest()
end

