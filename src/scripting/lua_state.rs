//! A Lua state with its sandbox and the scripts compiled in it. A store keeps a few of them; each
//! runs one script at a time.
//!
//! Invariant: the limit of memory is in force while text is compiled and while Lua code runs, and
//! lifted otherwise. Under a limit mlua calls Lua's functions through a protected call each, which
//! takes most of the time of a short script. Where this library makes Lua values for a script, it
//! knows their size, and lifts the limit if they fit.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table, Value};

use super::cache::Script;
use super::engine::{invalid, lua_failure};
use super::failure::{place, reply_error, reveal};
use super::functions::BAD_NAME;
use super::libraries::cjson::{self, SharedSettings};
use super::libraries::{self, Random};
use super::sha1::sha1_hex;
use super::shebang::FLAGS;
use super::watchdog;
use crate::commands::scripts::is_command;
use crate::error::Result;
use crate::keyspace::script_limits::ScriptLimits;
use watchdog::{Stop, Stopped, Watch};

const SANDBOX: &str = include_str!("sandbox.lua");
/// The name that Redis gives to scripts in error messages.
pub(super) const SCRIPT_NAME: &str = "@user_script";
/// The most scripts that are kept compiled in one state.
const MOST_COMPILED: usize = 512;
/// The time that a library may take to load, as in Redis.
const LOAD_TIME: Duration = Duration::from_millis(500);
/// The version of Redis whose scripts run here.
const REDIS_VERSION: (&str, u32) = ("7.0.15", 0x0007_000F);

/// A Lua state.
pub(super) struct LuaState {
    pub(super) lua: Lua,
    /// The first argument of `redis.call` for `redis.pcall`.
    pub(super) quietly: Table,
    /// Runs a script with `redis.call`, KEYS and ARGV, and adds to its error where it happened.
    pub(super) run: Function,
    pub(super) run_function: Function,
    load_library: Function,
    pub(super) watch: Arc<Watch>,
    pub(super) shared: Arc<Shared>,
    /// The most bytes of Lua values; zero is no limit.
    max_memory: usize,
    /// The most bytes of those of the script that runs.
    memory: Cell<usize>,
    compiled: HashMap<Arc<str>, Function>,
    /// The libraries of functions that were loaded.
    pub(super) functions: super::functions::LoadedFunctions,
}

/// What native functions of the state read and change.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The protocol that `redis.setresp` chose, 2 or 3.
    pub(super) protocol: AtomicU8,
    /// Whether a script that finds no memory starts again elsewhere.
    gives_up: AtomicBool,
    random: Arc<Random>,
    cjson: SharedSettings,
}

impl Shared {
    /// Prepares for the next script, whose `math.random` begins with this seed.
    pub(super) fn reset(&self, seed: u64) {
        self.protocol.store(2, Ordering::Relaxed);
        self.random.seed(seed);
        cjson::reset(&self.cjson);
    }
}

impl LuaState {
    /// Makes a state with its sandbox.
    pub(super) fn new(limits: ScriptLimits) -> mlua::Result<Self> {
        let lua = open()?;
        let (shared, watch) = (Arc::new(Shared::default()), watchdog::watch(&lua)?);
        let native = native_functions(&lua, &shared)?;
        native.raw_set("no_memory", no_memory(&lua, &shared, &watch)?)?;
        let chunk = lua.load(SANDBOX).set_name("=sandbox").set_mode(ChunkMode::Text);
        let sandbox: Table = chunk.call(native)?;
        lua.set_globals(sandbox.raw_get("globals")?)?;
        Ok(Self {
            quietly: sandbox.raw_get("quietly")?,
            run: sandbox.raw_get("run")?,
            run_function: sandbox.raw_get("run_function")?,
            load_library: sandbox.raw_get("load_library")?,
            watch,
            shared,
            max_memory: limits.max_memory,
            memory: Cell::new(limits.max_memory),
            compiled: HashMap::new(),
            functions: Default::default(),
            lua,
        })
    }

    /// The compiled form of a script.
    pub(super) fn compiled(&mut self, script: &Script) -> mlua::Result<Function> {
        if let Some(function) = self.compiled.get(&script.sha1) {
            return Ok(function.clone());
        }
        let function = self.compile(&script.source, SCRIPT_NAME)?;
        if self.compiled.len() >= MOST_COMPILED {
            self.compiled.clear();
        }
        self.compiled.insert(Arc::clone(&script.sha1), function.clone());
        Ok(function)
    }

    /// Runs the code of a library. Returns whether it succeeded, and the functions that it
    /// registered or its error.
    pub(super) fn load_library(&self, chunk: &Function) -> Result<(bool, Value)> {
        self.shared.reset(0);
        self.watch.start(Some(LOAD_TIME));
        let call = || catch_unwind(AssertUnwindSafe(|| self.load_library.call(chunk)));
        match self.limited(call).map_err(|error| lua_failure(&error))? {
            Ok(result) => result.map_err(|error| lua_failure(&error)),
            Err(payload) if payload.is::<Stopped>() => Err(invalid("ERR FUNCTION LOAD timeout")),
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Compiles text. Bytecode is refused.
    pub(super) fn compile(&self, source: &[u8], name: &str) -> mlua::Result<Function> {
        let chunk = self.lua.load(source).set_name(name).set_mode(ChunkMode::Text);
        self.limited(|| chunk.into_function())?
    }

    /// Limits the memory of the next script to so much more than there is, or lifts that limit.
    pub(super) fn allow_memory(&self, more: Option<usize>) {
        let most = if self.max_memory == 0 { usize::MAX } else { self.max_memory };
        let limit = more.map(|more| self.lua.used_memory().saturating_add(more).min(most));
        self.memory.set(limit.unwrap_or(self.max_memory));
        self.shared.gives_up.store(more.is_some(), Ordering::Relaxed);
    }

    /// Does `work` with the limit of memory in force. `work` catches what unwinds from a script.
    pub(super) fn limited<T>(&self, work: impl FnOnce() -> T) -> mlua::Result<T> {
        self.lua.set_memory_limit(self.memory.get())?;
        let result = work();
        self.lua.set_memory_limit(0)?;
        Ok(result)
    }

    /// Does `work`, which makes Lua values of this size at most, inside [`LuaState::limited`].
    /// The limit is lifted meanwhile if they fit.
    pub(super) fn making<T>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> mlua::Result<T>,
    ) -> mlua::Result<T> {
        if !self.has_room(bytes) {
            return work();
        }
        self.lua.set_memory_limit(0)?;
        let result = work();
        self.lua.set_memory_limit(self.memory.get())?;
        result
    }

    /// Whether Lua values of this size fit.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.memory.get() == 0 || self.lua.used_memory().saturating_add(bytes) < self.memory.get()
    }
}

/// A state with the libraries of Lua that the sandbox needs. The sandbox removes the others.
fn open() -> mlua::Result<Lua> {
    let options = LuaOptions::new().catch_rust_panics(false);
    let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, options)?;
    Ok(lua)
}

/// What the sandbox calls when a script has caught that there is no memory. A script that starts again
/// elsewhere ends at the watchdog's next look, and nothing that it does until then takes long.
fn no_memory(lua: &Lua, shared: &Arc<Shared>, watch: &Arc<Watch>) -> mlua::Result<Function> {
    let (shared, watch) = (Arc::clone(shared), Arc::clone(watch));
    lua.create_function(move |lua, ()| {
        if shared.gives_up.load(Ordering::Relaxed) {
            watch.end(Stop::Memory);
            lua.set_memory_limit(1)?;
        }
        Ok(())
    })
}

fn native_functions(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    native.raw_set("bad_name", BAD_NAME)?;
    native.raw_set("flags", lua.create_table_from(FLAGS.map(|flag| (flag, flag)))?)?;
    native.raw_set("version", REDIS_VERSION.0)?;
    native.raw_set("version_number", REDIS_VERSION.1)?;
    native.raw_set("reveal", lua.create_function(|lua, error: Value| reveal(lua, &error))?)?;
    native.raw_set("place", lua.create_function(|lua, ()| Ok(place(lua).unzip()))?)?;
    let sha1 = |lua: &Lua, args: mlua::MultiValue| match args.iter().collect::<Vec<_>>().as_slice()
    {
        [text] => {
            let text = lua.coerce_string((*text).clone())?;
            Ok(text.map_or_else(|| sha1_hex(b""), |text| sha1_hex(&text.as_bytes())))
        }
        _ => Err(reply_error("ERR wrong number of arguments")),
    };
    native.raw_set("sha1hex", lua.create_function(sha1)?)?;
    let state = Arc::clone(shared);
    let setresp = move |_: &Lua, version: u8| {
        state.protocol.store(version, Ordering::Relaxed);
        Ok(())
    };
    native.raw_set("setresp", lua.create_function(setresp)?)?;
    let known = |_: &Lua, name: mlua::LuaString| Ok(is_command(&name.as_bytes()));
    native.raw_set("is_command", lua.create_function(known)?)?;
    libraries::add(lua, &native, &shared.cjson)?;
    libraries::add_random(lua, &native, &shared.random)?;
    Ok(native)
}
