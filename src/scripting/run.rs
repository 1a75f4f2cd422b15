//! One run of a script on a `Tx`.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use mlua::{BString, Function, Lua, MultiValue, Table, Value};
use smallvec::SmallVec;

use super::engine::{ScriptState, invalid, lua_failure};
use super::failure::reply_error;
use super::lua_state::LuaState;
use super::to_lua::{error_text, lua_bytes, lua_bytes_of_strings, to_lua};
use super::to_reply::{NoReply, to_reply};
use super::watchdog::{RunningScript, Stop, Stopped};
use crate::commands::Reply;
use crate::commands::scripts::{self, Called, ScriptRules, over_budget};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::{ScriptBudget, Tx};

/// What a run needs beside the compiled script.
pub(super) struct Run<'a> {
    /// The digest of the script or the name of the function.
    pub(super) name: Arc<str>,
    pub(super) keys: &'a [&'a [u8]],
    pub(super) args: &'a [&'a [u8]],
    pub(super) read_only: bool,
    /// Whether keys and arguments are passed to the function instead of being globals.
    pub(super) is_function: bool,
}

/// What `redis.call` works on.
struct Host<'a, 't> {
    tx: &'a mut Tx<'t>,
    rules: ScriptRules,
    /// The failure of the store that ended the script.
    fatal: Option<Error>,
}

/// Lua's words for it.
const NO_MEMORY: &str = "not enough memory";

/// How Lua ended.
enum Ended {
    /// With the results of `run`: whether the script succeeded, and its value.
    Lua(mlua::Result<(bool, Value)>),
    /// By unwinding.
    Stopped,
}

/// The error for a script that does not compile.
pub(super) fn compile_failure(error: &mlua::Error) -> Error {
    let text = match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let text = text.lines().next().unwrap_or_default();
    invalid(format!("ERR Error compiling script (new function): {text}"))
}

impl Run<'_> {
    /// Runs the compiled script. Its writes are undone if it fails, unless the options tell that
    /// they remain.
    pub(super) fn execute(
        &self,
        tx: &mut Tx<'_>,
        state: &ScriptState,
        lua: LuaState,
        function: &Function,
    ) -> Result<Reply> {
        let keeps_writes = tx.store().script_limits().keeps_writes;
        let mut kept = None;
        let result = tx.attempt(|tx| match self.once(tx, state, lua, function) {
            // As a reply the error does not undo the writes.
            Err(error) if keeps_writes && error.kind() == ErrorKind::Invalid => {
                kept = Some(error);
                Ok(Reply::Nil)
            }
            result => result,
        });
        match kept {
            Some(error) if result.is_ok() => Ok(Reply::Error(error.message().to_owned())),
            _ => result,
        }
    }

    fn once(
        &self,
        tx: &mut Tx<'_>,
        state: &ScriptState,
        lua: LuaState,
        function: &Function,
    ) -> Result<Reply> {
        let limits = tx.store().script_limits();
        lua.shared.reset(tx.script_seed());
        let budget = tx.script_budget();
        let max_time = budget.and_then(|budget| budget.time);
        let since = lua.watch.start(max_time.or(limits.max_time));
        lua.allow_memory(budget.map(|budget| budget.memory));
        let _entered = state.running.enter(self.running(&lua, since));
        let rules = ScriptRules::new(tx.database(), self.read_only);
        let host = RefCell::new(Host { tx, rules, fatal: None });
        let ended = self.in_lua(&lua, &host, function);
        let Host { fatal, .. } = host.into_inner();
        let reason = lua.watch.reason();
        if let Some(error) = fatal {
            return Err(error);
        }
        let (succeeded, value) = match ended {
            _ if reason == Some(Stop::Time) && max_time.is_some() => return Err(over_budget()),
            _ if reason == Some(Stop::Memory) => return Err(over_budget()),
            Ended::Stopped => return Err(self.stopped(reason)),
            _ if reason.is_some() => return Err(self.stopped(reason)),
            Ended::Lua(Err(error)) => return Err(or_over_budget(lua_failure(&error), budget)),
            Ended::Lua(Ok(results)) => results,
        };
        let reply = match succeeded {
            true => {
                let resp3 = lua.shared.protocol.load(Ordering::Relaxed) == 3;
                to_reply(&value, resp3).or_else(|why| match why {
                    NoReply::TooDeep => Ok(Reply::Error("ERR reached lua stack limit".to_owned())),
                    NoReply::Lua => Err(self.failed(NO_MEMORY)),
                })
            }
            false => Err(self.error_of(&value)),
        };
        drop(value);
        lua.allow_memory(None);
        state.put_back(lua);
        reply.map_err(|error| or_over_budget(error, budget))
    }

    fn running(&self, lua: &LuaState, since: Instant) -> RunningScript {
        let watch = Arc::clone(&lua.watch);
        let (name, is_function) = (Arc::clone(&self.name), self.is_function);
        let mut command = Vec::new();
        if is_function {
            let count = self.keys.len().to_string();
            let words = [b"FCALL".as_slice(), name.as_bytes(), count.as_bytes()];
            command
                .extend(words.iter().chain(self.keys).chain(self.args).map(|word| word.to_vec()));
        }
        RunningScript { watch, since, name, command, is_function }
    }

    fn in_lua(&self, state: &LuaState, host: &RefCell<Host<'_, '_>>, function: &Function) -> Ended {
        let lua = &state.lua;
        let call = |lua: &Lua, args: MultiValue| redis_call(lua, state, host, args);
        let run = if self.is_function { &state.run_function } else { &state.run };
        let ran = lua.scope(|scope| {
            let call = scope.create_function(call)?;
            let (keys, args) = self.tables(state)?;
            let start = || run.call((function, call, keys, args));
            match state.limited(|| catch_unwind(AssertUnwindSafe(start)))? {
                Ok(result) => Ok(Ended::Lua(result)),
                Err(payload) if payload.is::<Stopped>() => Ok(Ended::Stopped),
                // A defect of this library, which the boundary reports.
                Err(payload) => resume_unwind(payload),
            }
        });
        ran.unwrap_or_else(|error| Ended::Lua(Err(error)))
    }

    /// The tables of keys and arguments.
    fn tables(&self, state: &LuaState) -> mlua::Result<(Table, Table)> {
        let make = || Ok((strings(&state.lua, self.keys)?, strings(&state.lua, self.args)?));
        let bytes = [self.keys, self.args].map(lua_bytes_of_strings);
        match state.has_room(bytes.iter().sum()) {
            true => make(),
            false => state.limited(make)?,
        }
    }

    /// The error of a script that was ended.
    fn stopped(&self, why: Option<Stop>) -> Error {
        let (kind, text) = match why {
            Some(Stop::Kill) => (ErrorKind::Timeout, "Script killed by user with SCRIPT KILL..."),
            Some(Stop::Abort) => (ErrorKind::Conflict, "the script starts again"),
            _ => (ErrorKind::Timeout, "the script ran longer than script_max_ms and was stopped"),
        };
        let name = &self.name;
        Error::new(kind, format!("ERR {text} script: {name}, nothing was changed."))
    }

    fn failed(&self, why: &str) -> Error {
        let name = &self.name;
        invalid(format!("ERR Error running script {name}, {why}"))
    }

    /// The error of a script that raised this value.
    fn error_of(&self, value: &Value) -> Error {
        let Value::Table(table) = value else {
            let text = value.as_string().map(mlua::LuaString::to_string_lossy);
            return self.failed(text.as_deref().unwrap_or("execution failure"));
        };
        let text = |name: &str| match table.raw_get(name) {
            Ok(Value::String(text)) => Some(text.to_string_lossy()),
            Ok(Value::Integer(number)) => Some(number.to_string()),
            Ok(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let mut message = text("err").unwrap_or_else(|| "ERR unknown error".to_owned());
        if let (Some(source), Some(line)) = (text("source"), text("line")) {
            message += &format!(" script: {}, on {source}:{line}.", self.name);
        }
        invalid(message)
    }
}

/// The error of a script that found no memory within its budget is that it needs more.
fn or_over_budget(error: Error, budget: Option<ScriptBudget>) -> Error {
    match budget.is_some() && error.message().contains(NO_MEMORY) {
        true => over_budget(),
        false => error,
    }
}

fn strings(lua: &Lua, items: &[&[u8]]) -> mlua::Result<Table> {
    lua.create_sequence_from(items.iter().map(|item| BString::from(*item)))
}

/// `redis.call`, or `redis.pcall`, which returns errors and is known by its first argument.
fn redis_call(
    lua: &Lua,
    state: &LuaState,
    host: &RefCell<Host<'_, '_>>,
    mut args: MultiValue,
) -> mlua::Result<Value> {
    let quietly = matches!(args.front(), Some(Value::Table(first)) if *first == state.quietly);
    if quietly {
        args.pop_front();
    }
    let fails = |text: String| {
        if !quietly {
            return Err(reply_error(text));
        }
        let reply = Reply::Error(text);
        state.making(lua_bytes(&reply), || to_lua(lua, &state.shared, &reply))
    };
    if args.is_empty() {
        let text = "ERR Please specify at least one argument for this redis lib call";
        return fails(text.to_owned());
    }
    let Some(words) = words(&args) else {
        let text = "ERR Lua redis lib command arguments must be strings or integers";
        return fails(text.to_owned());
    };
    let argv: SmallVec<[&[u8]; 8]> = words.iter().map(Word::bytes).collect();
    let Ok(mut host) = host.try_borrow_mut() else {
        return fails("ERR redis.call was called inside itself".to_owned());
    };
    let host = &mut *host;
    if host.fatal.is_some() || state.watch.is_over() {
        return fails("ERR the script must end".to_owned());
    }
    match scripts::call(host.tx, &mut host.rules, &argv) {
        Ok(Called::Reply(Reply::Error(text))) => fails(error_text(&text)),
        Ok(Called::Reply(reply)) => {
            state.watch.note_write(host.rules.wrote);
            state.making(lua_bytes(&reply), || to_lua(lua, &state.shared, &reply))
        }
        Ok(Called::Refused(why)) => fails(format!("ERR {why}")),
        Ok(Called::Alone) => {
            state.watch.end(Stop::Abort);
            fails("ERR the script starts again".to_owned())
        }
        Err(error) => {
            state.watch.end(Stop::Abort);
            let text = format!("ERR {error}");
            host.fatal = Some(error);
            fails(text)
        }
    }
}

/// An argument of `redis.call`.
enum Word {
    Text(mlua::string::BorrowedBytes),
    Number(String),
}

impl Word {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Number(text) => text.as_bytes(),
        }
    }
}

/// The arguments as text; `None` if one is neither a string nor a number.
fn words(args: &MultiValue) -> Option<SmallVec<[Word; 8]>> {
    args.iter()
        .map(|arg| match arg {
            Value::String(text) => Some(Word::Text(text.as_bytes())),
            #[expect(clippy::cast_precision_loss, reason = "it was a double before")]
            Value::Integer(number) => Some(Word::Number(Reply::double_text(*number as f64))),
            Value::Number(number) => Some(Word::Number(Reply::double_text(*number))),
            _ => None,
        })
        .collect()
}
