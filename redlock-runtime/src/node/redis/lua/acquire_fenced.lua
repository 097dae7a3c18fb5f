-- The end of acquire.lua for fenced locks: the number follows what a grant says.
-- {1, smaller, number}   and so on
if answer[1] == 1 then
  table.insert(answer, 3, fence())
end
return answer
