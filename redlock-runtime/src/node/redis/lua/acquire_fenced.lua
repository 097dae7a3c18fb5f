-- The end of acquire.lua for fenced locks: adds the answer to the ballot to the reply of a grant, which becomes {1, smaller, ballot}.
--
-- KEYS[3] the register   ARGV[#ARGV] the ballot
if answer[1] == 1 then
  table.insert(answer, 3, fence(KEYS[3], ARGV[#ARGV]))
end
return answer
