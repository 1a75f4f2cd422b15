//! Errors that native functions raise in a script.
//!
//! mlua carries them through Lua as values that no script may see. Where a script can catch an
//! error (`pcall`, `xpcall`, `coroutine.resume`), the sandbox asks [`reveal`] for the Lua value.

use std::fmt;

use mlua::{Lua, Value};

/// An error as a script sees it.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// A table with this text in the field `err`, as `redis.call` raises it.
    Reply(Vec<u8>),
    /// A text, with the place of the call before it.
    Text(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(text) => f.write_str(&String::from_utf8_lossy(text)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failure {}

/// An error with a table, as `redis.call` raises it.
pub(super) fn reply_error(text: impl Into<Vec<u8>>) -> mlua::Error {
    mlua::Error::external(Failure::Reply(text.into()))
}

/// An error with a text that begins with the place of the call, as functions of Lua raise it.
pub(super) fn text_error(lua: &Lua, text: impl fmt::Display) -> mlua::Error {
    let place = lua.inspect_stack(1, |debug| {
        let line = debug.current_line().filter(|_| debug.source().what != "C")?;
        let source = debug.source().short_src?.into_owned();
        Some(format!("{source}:{line}: "))
    });
    let place = place.flatten().unwrap_or_default();
    mlua::Error::external(Failure::Text(format!("{place}{text}")))
}

/// The error for an argument of the wrong type.
pub(super) fn bad_argument(lua: &Lua, at: usize, of: &str, why: impl fmt::Display) -> mlua::Error {
    // Lua knows no name of a function that `pcall` or a tail call has called.
    let named = lua.inspect_stack(0, |debug| debug.names().name.is_some());
    let of = if named == Some(true) { of } else { "?" };
    text_error(lua, format!("bad argument #{at} to '{of}' ({why})"))
}

/// The error for a missing argument, or one of the wrong type.
pub(super) fn expected(
    lua: &Lua,
    at: usize,
    of: &str,
    what: &str,
    found: Option<&Value>,
) -> mlua::Error {
    let found = match found {
        None => "no value",
        Some(Value::Integer(_)) => "number",
        Some(other) => other.type_name(),
    };
    bad_argument(lua, at, of, format!("{what} expected, got {found}"))
}

/// Where the error happened that the sandbox's handler is called for: the first place that is
/// neither in the sandbox nor in a native function.
pub(super) fn place(lua: &Lua) -> Option<(String, i64)> {
    // Level 0 is this function, level 1 the handler.
    (2..).map_while(|level| lua.inspect_stack(level, in_script)).flatten().next()
}

fn in_script(debug: &mlua::debug::Debug<'_>) -> Option<(String, i64)> {
    let source = debug.source();
    let name = source.source.unwrap_or_default();
    if source.what == "C" || name == "=sandbox" {
        return None;
    }
    let line = debug.current_line().and_then(|line| i64::try_from(line).ok()).unwrap_or(-1);
    Some((name.into_owned(), line))
}

/// The Lua value of an error that a native function raised.
pub(super) fn reveal(lua: &Lua, error: &Value) -> mlua::Result<Value> {
    let Value::Error(error) = error else {
        return lua.create_string("unknown error").map(Value::String);
    };
    match error.downcast_ref::<Failure>() {
        Some(Failure::Reply(text)) => {
            let table = lua.create_table()?;
            table.raw_set("err", lua.create_string(text)?)?;
            table.raw_set("ignore_error_stats_update", true)?;
            Ok(Value::Table(table))
        }
        Some(Failure::Text(text)) => lua.create_string(text).map(Value::String),
        None => {
            // Of an error of mlua itself, such as a wrong argument, the first line tells enough.
            let text = error.to_string();
            lua.create_string(text.lines().next().unwrap_or_default()).map(Value::String)
        }
    }
}
