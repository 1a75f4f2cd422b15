-- Builds the sandbox of a Lua state. Runs once, before any script.
--
-- Scripts see proxies: empty tables that find everything in the real table and refuse writes, so
-- that no script can leave anything behind for the next one. Lua 5.1 has no hook for `pairs` and
-- `next`, so these are replaced, as is all else that would look into or write to a proxy.

local native = ...

local raw_pcall, raw_xpcall, raw_next, raw_loadstring = pcall, xpcall, next, loadstring
local raw_setmetatable, raw_getmetatable = setmetatable, getmetatable
local raw_get, raw_set, raw_resume, raw_collect = rawget, rawset, coroutine.resume, collectgarbage
local ipairs = ipairs
local error, type, tostring, tonumber, select = error, type, tostring, tonumber, select
local byte, concat, unpack, raw_find = string.byte, table.concat, unpack, string.find
local reveal, place = native.reveal, native.place

local READ_ONLY = 'Attempt to modify a readonly table'
local real_of = {}

local function refuse()
  error(READ_ONLY, 2)
end

-- What getmetatable returns for a proxy: another one, of a table that only has __index.
local function proxy_of(real, shown)
  local metatable = { __index = real, __newindex = refuse }
  local proxy = raw_setmetatable({}, metatable)
  real_of[proxy] = real
  if shown then
    metatable.__metatable = shown
  else
    metatable.__metatable = raw_setmetatable({}, {
      __index = { __index = proxy }, __newindex = refuse, __metatable = false,
    })
    real_of[metatable.__metatable] = { __index = proxy }
  end
  return proxy, metatable
end

-- The error value of a native function is no Lua value that a script may see.
local function unwrapped(e)
  if type(e) == 'userdata' then return reveal(e) end
  return e
end

-- The error value of a script that goes on.
local function noticed(e)
  e = unwrapped(e)
  if type(e) == 'string' and raw_find(e, 'not enough memory', 1, true) then native.no_memory() end
  return e
end

local function caught(ok, ...)
  if ok then return ok, ... end
  local e = noticed((...))
  if type(e) == 'table' and not real_of[e] then
    local text = e.err
    if type(text) == 'string' or type(text) == 'number' then return false, text end
  end
  return false, e
end

local function resumed(ok, ...)
  if ok then return ok, ... end
  return false, noticed((...))
end

local real = {}

-- Functions of `table` write without asking a metatable.
local function guarded(raw)
  return function(t, ...)
    if real_of[t] then error(READ_ONLY, 0) end
    return raw(t, ...)
  end
end

local function pcall(...)
  return caught(raw_pcall(...))
end

local function xpcall(f, handler)
  if type(handler) ~= 'function' then return raw_xpcall(f, handler) end
  return resumed(raw_xpcall(f, function(e) return handler(unwrapped(e)) end))
end

-- Bytecode could do anything, so only text is compiled.
local function loadstring(source, name)
  if type(source) == 'string' and byte(source, 1) == 27 then
    return nil, 'attempt to load chunk with wrong mode'
  end
  local chunk, e = raw_loadstring(source, name)
  if chunk then return chunk end
  return nil, noticed(e)
end

local function load(reader, name)
  local pieces = {}
  while true do
    local piece = reader()
    if piece == nil or piece == '' then break end
    if type(piece) ~= 'string' then return nil, 'reader function must return a string' end
    pieces[#pieces + 1] = piece
  end
  return loadstring(concat(pieces), name or '=(load)')
end

local function next(t, k)
  return raw_next(real_of[t] or t, k)
end

local function pairs(t)
  if real_of[t] then return next, t, nil end
  if type(t) ~= 'table' then
    error("bad argument #1 to 'pairs' (table expected, got " .. (t == nil and 'no value' or type(t)) .. ')', 2)
  end
  return raw_next, t, nil
end

local function rawget(t, k)
  return raw_get(real_of[t] or t, k)
end

local function rawset(t, k, v)
  if real_of[t] then error(READ_ONLY, 0) end
  return raw_set(t, k, v)
end

local function setmetatable(t, metatable)
  if real_of[t] then error(READ_ONLY, 0) end
  return raw_setmetatable(t, metatable)
end

local function collectgarbage(what, ...)
  if what == nil or what == 'count' or what == 'collect' or what == 'step' then
    return raw_collect(what or 'collect', ...)
  end
  return 0
end

local function fail(text)
  error({ err = 'ERR ' .. text }, 0)
end

local function error_table(text)
  if byte(text, 1) ~= 45 then text = '-' .. text end
  local code, message = text:match('^%-([^ ]*) (.*)$')
  if not code then code, message = 'ERR', text:sub(2) end
  message = message:gsub('^[\r\n]+', ''):gsub('[\r\n]+$', '')
  return { err = code .. ' ' .. message }
end

local WRONG = 'wrong number or type of arguments'

local redis = {
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
  REDIS_VERSION = native.version, REDIS_VERSION_NUM = native.version_number,
  sha1hex = native.sha1hex,
  error_reply = function(...)
    if select('#', ...) ~= 1 or type((...)) ~= 'string' then return { err = 'ERR ' .. WRONG } end
    return error_table((...))
  end,
  status_reply = function(...)
    if select('#', ...) ~= 1 or type((...)) ~= 'string' then return { err = 'ERR ' .. WRONG } end
    return { ok = (...) }
  end,
  setresp = function(...)
    if select('#', ...) ~= 1 then fail('redis.setresp() requires one argument.') end
    local version = tonumber((...))
    if version ~= 2 and version ~= 3 then fail('RESP version must be 2 or 3.') end
    native.setresp(version)
  end,
  set_repl = function(...)
    if select('#', ...) ~= 1 then fail('redis.set_repl() requires two arguments.') end
    local flags = tonumber((...)) or 0
    if flags < 0 or flags >= 4 then
      fail('Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
    end
  end,
  replicate_commands = function() return true end,
  log = function(...)
    if select('#', ...) < 2 then fail('redis.log() requires two arguments or more.') end
    local level = tonumber((...))
    if not level then fail('First argument must be a number (log level).') end
    if level < 0 or level > 3 then fail('Invalid debug level.') end
  end,
  acl_check_cmd = function(name)
    if type(name) ~= 'string' then
      fail('Please specify at least one argument for this redis lib call')
    end
    if not native.is_command(name) then fail('Invalid command passed to redis.acl_check_cmd()') end
    return true
  end,
}

-- `redis.call` returns an error instead of raising it if this is its first argument. Only `pcall`
-- below knows the table.
local quietly = {}

redis.pcall = function(...)
  return redis.call(quietly, ...)
end

local real_string, real_table, real_math, real_coroutine = {}, {}, {}, {}
for name, value in raw_next, string do real_string[name] = value end
for name, value in raw_next, table do real_table[name] = value end
for name, value in raw_next, math do real_math[name] = value end
for name, value in raw_next, coroutine do real_coroutine[name] = value end
-- Lua 5.1 matches each item of a pattern one level deeper on the stack, without a limit.
local SPECIALS, LONGEST_PATTERN = '[%^%$%*%+%?%.%(%[%%%-]', 1000
local function bounded(raw)
  return function(text, pattern, ...)
    if type(pattern) == 'string' and #pattern > LONGEST_PATTERN and raw_find(pattern, SPECIALS)
      and not (raw == raw_find and select(2, ...)) then
      error('pattern too long', 2)
    end
    return raw(text, pattern, ...)
  end
end
for _, name in ipairs({ 'find', 'match', 'gmatch', 'gsub' }) do
  real_string[name] = bounded(string[name])
end
real_string.gfind = real_string.gmatch
real_math.random = native.random
real_math.randomseed = native.randomseed
for _, name in ipairs({ 'insert', 'remove', 'sort', 'setn' }) do
  real_table[name] = guarded(table[name])
end
real_coroutine.resume = function(...) return resumed(raw_resume(...)) end

local function library(name, table)
  local proxy = proxy_of(table)
  real[name] = proxy
  return proxy
end

local string_proxy = library('string', real_string)
library('table', real_table)
library('math', real_math)
library('coroutine', real_coroutine)
library('redis', redis)
library('cjson', native.cjson)
library('cmsgpack', native.cmsgpack)
library('struct', native.struct)
library('bit', native.bit)

-- `('x'):rep(3)` finds its functions in the real table; scripts that ask see the proxy.
local of_strings = raw_getmetatable('')
of_strings.__index = real_string
of_strings.__metatable = (proxy_of({ __index = string_proxy }, false))

for name, value in raw_next, {
  assert = assert, collectgarbage = collectgarbage, error = error, gcinfo = gcinfo,
  getmetatable = getmetatable, ipairs = ipairs, load = load, loadstring = loadstring, next = next,
  pairs = pairs, pcall = pcall, rawequal = rawequal, rawget = rawget, rawset = rawset,
  select = select, setmetatable = setmetatable, tonumber = tonumber, tostring = tostring,
  type = type, unpack = unpack, xpcall = xpcall, _VERSION = _VERSION,
} do
  real[name] = value
end
local globals, metatable_of_globals = proxy_of(real)
real._G = globals

local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end
raw_setmetatable(real, { __index = missing })

-- Adds to an error where it happened: the first place outside this file and native functions.
local function handler(e)
  local source, line = place()
  e = unwrapped(e)
  if type(e) ~= 'table' or real_of[e] then e = { err = 'ERR ' .. tostring(e) } end
  if source then
    raw_set(e, 'source', source)
    raw_set(e, 'line', line)
  end
  return e
end

local function run(script, call, keys, args)
  redis.call, real.KEYS, real.ARGV = call, keys, args
  return raw_xpcall(script, handler)
end

local function run_function(f, call, keys, args)
  return run(function() return f(keys, args) end, call)
end

-- What a library registers while it loads.
local registered

-- The flags in small letters.
local function known_flags(given)
  local flags = {}
  for at, flag in ipairs(given) do
    flags[at] = type(flag) == 'string' and native.flags[flag:lower()]
    if not flags[at] then fail('unknown flag given') end
  end
  return flags
end

local function register_function(...)
  if not registered then fail('redis.register_function can only be called on FUNCTION LOAD command') end
  local count = select('#', ...)
  if count < 1 or count > 2 then fail('wrong number of arguments to redis.register_function') end
  local name, callback = ...
  local entry = {}
  if count == 2 then
    if type(name) ~= 'string' and type(name) ~= 'number' then
      fail('first argument to redis.register_function must be a string')
    end
    entry.name = tostring(name)
    entry.callback = callback
    if type(callback) ~= 'function' then
      fail('second argument to redis.register_function must be a function')
    end
  else
    if type(name) ~= 'table' then
      fail('calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).')
    end
    for key, value in raw_next, name do
      if key == 'function_name' then
        if type(value) ~= 'string' and type(value) ~= 'number' then
          fail('function_name argument given to redis.register_function must be a string')
        end
        entry.name = tostring(value)
      elseif key == 'description' then
        if type(value) ~= 'string' and type(value) ~= 'number' then
          fail('description argument given to redis.register_function must be a string')
        end
        entry.description = tostring(value)
      elseif key == 'callback' then
        if type(value) ~= 'function' then
          fail('callback argument given to redis.register_function must be a function')
        end
        entry.callback = value
      elseif key == 'flags' then
        if type(value) ~= 'table' then
          fail('flags argument to redis.register_function must be a table representing function flags')
        end
        entry.flags = known_flags(value)
      else
        fail('unknown argument given to redis.register_function')
      end
    end
    if not entry.name then fail('redis.register_function must get a function name argument') end
    if not entry.callback then fail('redis.register_function must get a callback argument') end
  end
  if not entry.name:find('^[%w_]+$') then fail(native.bad_name) end
  for _, other in ipairs(registered) do
    if other.name:lower() == entry.name:lower() then fail('Function already exists in the library') end
  end
  registered[#registered + 1] = entry
end

-- All that code outside functions sees while a library loads.
local loading_redis = { log = redis.log, register_function = register_function }
for name, value in raw_next, redis do
  if name:find('^LOG_') or name:find('^REDIS_') then
    loading_redis[name] = value
  end
end
raw_setmetatable(loading_redis, { __index = missing })
local loading = raw_setmetatable({ redis = (proxy_of(loading_redis)) }, { __index = missing })

local function load_library(chunk)
  registered = {}
  metatable_of_globals.__index = loading
  local ok, e = raw_xpcall(chunk, handler)
  metatable_of_globals.__index = real
  local result = ok and registered or e
  registered = nil
  return ok, result
end

return {
  globals = globals, load_library = load_library, quietly = quietly, run = run,
  run_function = run_function,
}
