-- The end of extend.lua for fenced locks: the number follows what an extension says.
-- {n, number}   and so on
if answer[1] >= 0 then
  table.insert(answer, 2, fence())
end
return answer
