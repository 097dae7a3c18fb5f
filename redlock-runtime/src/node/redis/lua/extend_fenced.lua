-- The end of extend.lua for fenced locks: adds the answer to the ballot to the reply of an extension, which becomes {n, ballot}.
--
-- KEYS[3] the register   ARGV[#ARGV] the ballot
if answer[1] and answer[1] >= 0 then
  table.insert(answer, 2, fence(KEYS[3], ARGV[#ARGV]))
end
return answer
