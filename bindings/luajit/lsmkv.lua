-- lsmkv from LuaJIT: every command as a method, by name, with the replies of Redis.
--
--     local lsmkv = require("lsmkv")
--     local db = lsmkv.open("/path/to/store", {sync = "always"})
--     db:hset("user:1", "name", "alice")
--     db:transact(function(t) t:decrby("a", 5); t:incrby("b", 5) end)
--     db:close()
--
-- Strings and numbers go in; strings, numbers, booleans, tables and lsmkv.null come out; a map is a
-- table by key. The library is $LSMKV_LIBRARY, or the system's liblsmkv.so.0.

local ffi = require("ffi")

ffi.cdef [[
typedef struct lsmkv_db lsmkv_db;
typedef struct lsmkv_options lsmkv_options;
typedef struct lsmkv_reply lsmkv_reply;
typedef struct { int32_t code; int32_t os_errno; char msg[248]; } lsmkv_err;
typedef struct { int32_t kind; int32_t flags; int64_t num; uint64_t off; uint64_t len; } lsmkv_node;
uint32_t lsmkv_abi_version(void);
lsmkv_options *lsmkv_options_new(void);
void lsmkv_options_free(lsmkv_options *options);
int32_t lsmkv_options_set(lsmkv_options *options, const char *name, const char *value, lsmkv_err *err);
int32_t lsmkv_open(const char *path, const lsmkv_options *options, lsmkv_db **out, lsmkv_err *err);
int32_t lsmkv_close(lsmkv_db *db, lsmkv_err *err);
int32_t lsmkv_snapshot(lsmkv_db *db, lsmkv_db **out, lsmkv_err *err);
int32_t lsmkv_begin(lsmkv_db *db, lsmkv_db **out, lsmkv_err *err);
int32_t lsmkv_commit(lsmkv_db *db, lsmkv_err *err);
int32_t lsmkv_command(lsmkv_db *db, size_t argc, const uint8_t *const *argv, const size_t *lens,
                      lsmkv_reply **out, lsmkv_err *err);
int32_t lsmkv_reply_view(const lsmkv_reply *reply, const lsmkv_node **nodes, size_t *n,
                         const uint8_t **arena, size_t *arena_len);
void lsmkv_reply_free(lsmkv_reply *reply);
]]

local C = ffi.load(os.getenv("LSMKV_LIBRARY") or "liblsmkv.so.0")
assert(C.lsmkv_abi_version() == 0, "the library has another ABI version than this binding")

local CONFLICT = -11
local lsmkv = {null = setmetatable({}, {__tostring = function() return "null" end})}

-- The error that is thrown: code is the status of the store, nil for an error of a command.
local Error = {__tostring = function(self) return self.message end}

local function checked(call, ...)
    local err = ffi.new("lsmkv_err")
    local arguments, n = {...}, select("#", ...)
    arguments[n + 1] = err
    if call(unpack(arguments, 1, n + 1)) < 0 then
        error(setmetatable({code = err.code, message = ffi.string(err.msg)}, Error), 0)
    end
end

local function decoded(reply)
    local nodes, arena = ffi.new("const lsmkv_node *[1]"), ffi.new("const uint8_t *[1]")
    C.lsmkv_reply_view(reply, nodes, nil, arena, nil)
    local at, double = -1, ffi.new("union { int64_t bits; double number; }")
    local function node()
        at = at + 1
        local this = nodes[0][at]
        local kind = this.kind
        if kind == 0 then return lsmkv.null end
        if kind == 3 then return tonumber(this.num) end
        if kind == 5 then
            double.bits = this.num
            return double.number
        end
        if kind == 6 then return this.num ~= 0 end
        if kind < 7 or kind > 10 then
            local text = ffi.string(arena[0] + this.off, this.len)
            return kind == 2 and setmetatable({message = text}, Error) or text
        end
        local children = {}
        local n = tonumber(this.num)
        if kind == 8 then
            for _ = 1, n / 2 do
                local key = node()
                children[key] = node()
            end
        else
            for i = 1, n do children[i] = node() end
        end
        return children
    end
    return node()
end

-- A store, a snapshot of one, or a transaction.
local Handle = {}

local function handle(made)
    return setmetatable({db = ffi.gc(made, function(db) C.lsmkv_close(db, nil) end)}, Handle)
end

local function given(call, ...)
    local out = ffi.new("lsmkv_db *[1]")
    local arguments, n = {...}, select("#", ...)
    arguments[n + 1] = out
    checked(call, unpack(arguments, 1, n + 1))
    return handle(out[0])
end

local methods = {}

function methods:command(...)
    local words, n = {...}, select("#", ...)
    local argv, lens = ffi.new("const uint8_t *[?]", n), ffi.new("size_t[?]", n)
    for i = 1, n do
        words[i] = tostring(words[i])
        argv[i - 1] = ffi.cast("const uint8_t *", words[i])
        lens[i - 1] = #words[i]
    end
    local out = ffi.new("lsmkv_reply *[1]")
    checked(C.lsmkv_command, self.db, n, argv, lens, out)
    local reply = ffi.gc(out[0], C.lsmkv_reply_free)
    local answer = decoded(reply)
    if getmetatable(answer) == Error then error(answer, 0) end
    return answer
end

function methods:snapshot() return given(C.lsmkv_snapshot, self.db) end

-- Runs the body in a transaction and commits it. After a conflict it runs again.
function methods:transact(body, attempts)
    for left = attempts or 100, 1, -1 do
        local transaction = given(C.lsmkv_begin, self.db)
        local ok, result = pcall(function()
            local answer = body(transaction)
            checked(C.lsmkv_commit, transaction.db)
            return answer
        end)
        transaction:close()
        if ok then return result end
        local conflict = getmetatable(result) == Error and result.code == CONFLICT
        if not conflict or left == 1 then error(result, 0) end
    end
end

function methods:close()
    local db = self.db
    self.db = nil
    if db ~= nil then checked(C.lsmkv_close, ffi.gc(db, nil)) end
end

-- Every other field is a command.
Handle.__index = function(_, name)
    return methods[name] or function(self, ...) return self:command(name, ...) end
end

function lsmkv.open(path, options)
    local all = ffi.gc(C.lsmkv_options_new(), C.lsmkv_options_free)
    for name, value in pairs(options or {}) do
        checked(C.lsmkv_options_set, all, name, tostring(value))
    end
    return given(C.lsmkv_open, path, all)
end

return lsmkv
