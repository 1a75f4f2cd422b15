-- The binding for LuaJIT, on a store in the directory that is the first argument.
package.path = "bindings/luajit/?.lua;" .. package.path
local lsmkv = require("lsmkv")

local directory = arg[1]
local db = lsmkv.open(directory, {sync = "always"})

assert(db:hset("user:1", "name", "alice", "visits", 1) == 2)
assert(db:hincrby("user:1", "visits", 4) == 5)
assert(db:hgetall("user:1").name == "alice")
db:rpush("queue", "a", "\0\255", "c")
local part = db:lrange("queue", 1, -1)
assert(#part == 2 and part[1] == "\0\255" and part[2] == "c")
assert(db:get("none") == lsmkv.null)
db:zadd("board", 12.5, "alice", 7, "bob")
assert(db:zscore("board", "alice") == 12.5)

local before = db:snapshot()
db:set("a", 10)
db:set("b", 0)
assert(before:get("a") == lsmkv.null)
before:close()

local runs = 0
local left = db:transact(function(t)
    local now = t:decrby("a", 3)
    runs = runs + 1
    if runs == 1 then db:set("a", 100) end -- in between: the commit conflicts
    t:incrby("b", 3)
    return now
end)
assert(runs == 2 and left == 97)
local ok, why = pcall(db.transact, db, function(t) t:set("a", 1); error("no", 0) end)
assert(not ok and why == "no")

ok, why = pcall(db.command, db, "LPUSH", "user:1", "x")
assert(not ok and why.code == nil and tostring(why):find("^WRONGTYPE"))
ok, why = pcall(lsmkv.open, directory)
assert(not ok and why.code == -17)
ok, why = pcall(lsmkv.open, ":memory:", {sink = "off"})
assert(not ok and why.code == -2)
db:close()

db = lsmkv.open(directory)
assert(table.concat(db:mget("a", "b"), " ") == "97 3")
db:close()
print("ok: luajit")
