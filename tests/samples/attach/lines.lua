-- Answers each line by work of the string library, errors and coroutines.
local function fibonacci(n) if n < 2 then return n end return fibonacci(n - 1) + fibonacci(n - 2) end
io.write("ready\n") io.flush()
for line in io.lines() do
    local words = {}
    for i = 1, 400 do words[i] = string.format("%05d:%s", (i * 7919) % 400, string.rep("x", i % 13)) end
    table.sort(words)
    local text = table.concat(words, ","):gsub("x+", function(run) return #run end)
    local fine = pcall(function() error({fibonacci(12)}) end)
    local sum = 0
    for i in coroutine.wrap(function() for i = 1, 50 do coroutine.yield(i) end end) do sum = sum + i end
    io.write(#text, " ", tostring(fine), " ", sum, "\n") io.flush()
end
os.exit(0)
