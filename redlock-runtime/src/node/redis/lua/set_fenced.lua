-- The end of the scripts for several names: what the registers say to a ballot follows what the answer says of the names, if the
-- token has them. All of them have to accept it; otherwise the largest is told.
-- KEYS, behind those of the names: the registers   ARGV[#ARGV - 1] the ballot
-- An answer says so that begins with `least` or more, and `place` is where the number belongs.
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
