-- The end of acquire.lua for fenced locks: adds the answer to the ballot to the reply of a grant.
-- KEYS[3] the register   ARGV[#ARGV] the ballot
-- {1, smaller, ballot}   and so on
if answer[1] == 1 then
  table.insert(answer, 3, fence(KEYS[3], ARGV[#ARGV]))
end
return answer
