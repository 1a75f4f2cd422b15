//! Arguments of native functions, with the error texts of Lua.

use mlua::{Lua, LuaString, MultiValue, Value};

use crate::scripting::failure::expected;

/// The value of argument `at`, from 1.
pub(super) fn value(args: &MultiValue, at: usize) -> Value {
    args.get(at - 1).cloned().unwrap_or(Value::Nil)
}

/// Argument `at` as a number.
pub(super) fn number(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<f64> {
    match lua.coerce_number(value(args, at))? {
        Some(number) => Ok(number),
        None => Err(expected(lua, at, of, "number", args.get(at - 1))),
    }
}

/// Argument `at` as an integer, or the default if it is missing.
pub(super) fn integer_or(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    of: &str,
    default: i64,
) -> mlua::Result<i64> {
    if value(args, at).is_nil() {
        return Ok(default);
    }
    #[expect(clippy::cast_possible_truncation, reason = "Lua truncates as well")]
    number(lua, args, at, of).map(|number| number as i64)
}

/// Argument `at` as a string.
pub(super) fn string(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<LuaString> {
    match lua.coerce_string(value(args, at))? {
        Some(text) => Ok(text),
        None => Err(expected(lua, at, of, "string", args.get(at - 1))),
    }
}
