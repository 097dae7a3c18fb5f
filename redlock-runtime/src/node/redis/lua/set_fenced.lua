-- The end of the scripts for several keys: adds the answer of the registers to the reply, if the token holds the keys. All registers must
-- accept the ballot; otherwise the largest number is returned.
--
-- KEYS, after those of the locks: the registers   ARGV[#ARGV - 1] the ballot
--
-- A reply that begins with `least` or more means that the token holds the keys. `place` is the position of the number in the reply.
if #KEYS > 2 * #wanted and answer[1] and answer[1] >= least then
  local ballot, all = ARGV[#ARGV - 1], nil
  for at = 2 * #wanted + 1, #KEYS do
    local said = fence(KEYS[at], ballot)
    if all == 0 or said == 0 then
      all = 0
    elseif all and (all < 0 or said < 0) then
      all = -math.max(math.abs(all), math.abs(said))
    else
      all = said
    end
  end
  table.insert(answer, place, all)
end
return answer
