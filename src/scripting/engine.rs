//! The commands that run scripts and manage them.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::cache::{Script, ScriptCache};
use super::functions;
use super::lua_state::LuaState;
use super::run::{Run, compile_failure};
use super::sha1::sha1_hex;
use super::shebang::Shebang;
use super::watchdog::{RunningScripts, Stop};
use crate::commands::args::{Args, quoted, wrong_number};
use crate::commands::scripts::{NO_SCRIPT, ScriptCall, ScriptName};
use crate::commands::{Reply, ScriptEngine};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;

/// The most Lua states that a store keeps for later.
const MOST_IDLE: usize = 16;
/// A state with more memory than this is not kept.
const MOST_IDLE_BYTES: usize = 4 << 20;

/// Runs scripts in Lua.
#[derive(Debug)]
pub(crate) struct LuaEngine;

/// What the engine keeps for a store.
#[derive(Default)]
pub(super) struct ScriptState {
    pub(super) scripts: Mutex<ScriptCache>,
    idle: Mutex<Vec<LuaState>>,
    pub(super) running: RunningScripts,
}

pub(super) fn invalid(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, text)
}

/// What the engine keeps for the store of this command.
pub(super) fn state_of<'t>(tx: &Tx<'t>) -> Result<&'t ScriptState> {
    let state = tx.store().script_state::<ScriptState>();
    state.ok_or_else(|| Error::new(ErrorKind::Unsupported, "the store has another script engine"))
}

impl ScriptState {
    /// A state that runs no script.
    pub(super) fn take(&self, tx: &Tx<'_>) -> Result<LuaState> {
        if let Some(state) = self.idle.lock().pop() {
            return Ok(state);
        }
        LuaState::new(tx.store().script_limits()).map_err(|error| lua_failure(&error))
    }

    /// Keeps a state for the next script, unless it is too large or one of too many.
    pub(super) fn put_back(&self, state: LuaState) {
        if state.lua.used_memory() > MOST_IDLE_BYTES {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(state);
        }
    }
}

/// The error for a Lua state that cannot be made or used.
pub(super) fn lua_failure(error: &mlua::Error) -> Error {
    let text = error.to_string();
    Error::new(ErrorKind::NoMemory, format!("ERR Lua: {}", text.lines().next().unwrap_or_default()))
}

impl ScriptEngine for LuaEngine {
    fn run(&self, tx: &mut Tx<'_>, call: &ScriptCall<'_>) -> Result<Reply> {
        let state = state_of(tx)?;
        match call.name {
            ScriptName::Function(name) => functions::call(tx, state, name, call),
            ScriptName::Source(source) => {
                let sha1 = sha1_hex(source);
                let known = state.scripts.lock().find(sha1.as_bytes());
                let script = match known {
                    Some(script) => script,
                    None => load(tx, state, source, sha1)?,
                };
                run_script(tx, state, &script, call)
            }
            ScriptName::Sha1(sha1) => {
                let known = state.scripts.lock().find(sha1);
                let script = known.ok_or_else(|| invalid(NO_SCRIPT))?;
                run_script(tx, state, &script, call)
            }
        }
    }

    fn script(&self, tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
        let state = state_of(tx)?;
        let word = args.bytes()?;
        let count = args.len();
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let wrong = |name: &str| Err(wrong_number(&format!("script|{name}")));
        if is("LOAD") {
            return if count == 1 { self.load(tx, state, args.bytes()?) } else { wrong("load") };
        }
        if is("EXISTS") {
            if count == 0 {
                return wrong("exists");
            }
            let scripts = state.scripts.lock();
            let known = |sha1: &&[u8]| Reply::Int(i64::from(scripts.find(sha1).is_some()));
            return Ok(Reply::Array(args.all().iter().map(known).collect()));
        }
        if is("FLUSH") {
            let how = args.all();
            let known = |how: &&[u8]| {
                how.eq_ignore_ascii_case(b"ASYNC") || how.eq_ignore_ascii_case(b"SYNC")
            };
            if how.len() > 1 || !how.iter().all(known) {
                return Err(invalid("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
            }
            state.scripts.lock().clear();
            return Ok(Reply::OK);
        }
        if is("KILL") {
            return if count == 0 { kill(tx, state, false) } else { wrong("kill") };
        }
        if is("HELP") {
            return if count == 0 { Ok(help("SCRIPT", SCRIPT_HELP)) } else { wrong("help") };
        }
        let word = quoted(word);
        Err(invalid(format!("ERR unknown subcommand '{word}'. Try SCRIPT HELP.")))
    }

    fn find_function(&self, tx: &Tx<'_>, name: &[u8]) -> Result<()> {
        functions::find(tx, state_of(tx)?, name)
    }

    fn function(&self, tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
        functions::command(tx, state_of(tx)?, args)
    }
}

impl LuaEngine {
    fn load(&self, tx: &Tx<'_>, state: &ScriptState, source: &[u8]) -> Result<Reply> {
        let sha1 = sha1_hex(source);
        let known = state.scripts.lock().find(sha1.as_bytes());
        let script = match known {
            Some(script) => script,
            None => load(tx, state, source, sha1)?,
        };
        Ok(Reply::Bulk(Bytes::copy_from_slice(script.sha1.as_bytes())))
    }
}

/// Ends the script, or function, that has run longest.
pub(super) fn kill(tx: &Tx<'_>, state: &ScriptState, function: bool) -> Result<Reply> {
    let keeps_writes = tx.store().script_limits().keeps_writes;
    match state.running.longest(function) {
        // What it wrote would remain, half of what it meant to write.
        Some(script) if keeps_writes && script.watch.has_written() => Err(invalid(UNKILLABLE)),
        Some(script) => {
            script.watch.end(Stop::Kill);
            Ok(Reply::OK)
        }
        None => Err(invalid("NOTBUSY No scripts in execution right now.")),
    }
}

const UNKILLABLE: &str = "UNKILLABLE Sorry the script already executed write commands against the \
     dataset. You can either wait the script termination or kill the server in a hard way using the \
     SHUTDOWN NOSAVE command.";

const SCRIPT_HELP: &[&str] = &[
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache.",
    "KILL",
    "    End the script that has run longest.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
];

/// The reply of HELP.
pub(super) fn help(command: &str, lines: &[&str]) -> Reply {
    let first = format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    let last = ["HELP", "    Print this help."];
    let lines = std::iter::once(first.as_str()).chain(lines.iter().copied()).chain(last);
    Reply::Array(lines.map(|line| Reply::Text(Bytes::copy_from_slice(line.as_bytes()))).collect())
}

/// Compiles a script and keeps it.
fn load(tx: &Tx<'_>, state: &ScriptState, source: &[u8], sha1: String) -> Result<Arc<Script>> {
    let (shebang, source) = Shebang::of_script(source)?;
    let script = Arc::new(Script { sha1: sha1.into(), source: source.to_vec(), shebang });
    let mut lua = state.take(tx)?;
    let compiled = lua.compiled(&script).map_err(|error| compile_failure(&error));
    state.put_back(lua);
    compiled?;
    state.scripts.lock().add(&script);
    Ok(script)
}

fn run_script(
    tx: &mut Tx<'_>,
    state: &ScriptState,
    script: &Script,
    call: &ScriptCall<'_>,
) -> Result<Reply> {
    let no_writes = script.shebang.no_writes;
    if call.read_only && script.shebang.given && !no_writes {
        return Err(invalid("ERR Can not execute a script with write flag using *_ro command."));
    }
    let mut lua = state.take(tx)?;
    let function = lua.compiled(script).map_err(|error| compile_failure(&error))?;
    let run = Run {
        name: Arc::clone(&script.sha1),
        keys: call.keys,
        args: call.args,
        read_only: call.read_only || no_writes,
        is_function: false,
    };
    run.execute(tx, state, lua, &function)
}
