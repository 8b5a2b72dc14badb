-- Interpreter work of many kinds: recursion, closures, tables, strings, errors, coroutines.
-- arg[1]: rounds (about 4 million C calls each)
local rounds = tonumber(arg and arg[1]) or 3

local function fibonacci(n)
    if n < 2 then return n end
    return fibonacci(n - 1) + fibonacci(n - 2)
end

local function words(count)
    local list = {}
    for i = 1, count do
        list[#list + 1] = string.format("%05d:%s", (i * 7919) % count, string.rep("x", i % 13))
    end
    table.sort(list)
    return table.concat(list, ","):gsub("x+", function(run) return #run end)
end

local function failing(n)
    if n == 0 then error({ code = 7 }) end
    return failing(n - 1) + 1
end

local function producer(count)
    return coroutine.wrap(function()
        for i = 1, count do coroutine.yield(i) end
    end)
end

local total = 0
for _ = 1, rounds do
    total = total + fibonacci(24) + #words(20000)
    for i = 1, 20000 do
        local ok, failure = pcall(failing, i % 10)
        if not ok then total = total + failure.code end
    end
    for value in producer(60000) do total = total + value % 3 end
    local text = {}
    for i = 1, 40000 do text[i] = tostring(i) .. "/" .. tostring(i * 0.5) end
    total = total + #table.concat(text)
    for key in pairs(text) do total = total + key % 2 end
end
print(total)
