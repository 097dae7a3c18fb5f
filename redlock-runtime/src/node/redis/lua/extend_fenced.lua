-- The end of extend.lua for fenced locks: what is said to the ballot follows what an extension says.
-- {n, ballot}   and so on
if answer[1] >= 0 then
  table.insert(answer, 2, fence())
end
return answer
