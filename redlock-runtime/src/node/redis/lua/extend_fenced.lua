-- The end of extend.lua for fenced locks: what is said to the ballot follows what an extension says.
-- KEYS[3] the register   ARGV[#ARGV] the ballot
-- {n, ballot}   and so on
if answer[1] and answer[1] >= 0 then
  table.insert(answer, 2, fence(KEYS[3], ARGV[#ARGV]))
end
return answer
