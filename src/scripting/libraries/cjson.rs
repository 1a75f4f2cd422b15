//! `cjson`: JSON. Texts of errors, limits and forms are those of lua-cjson in Redis.

mod decode;
mod encode;

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};
use parking_lot::Mutex;

use super::arguments::{integer_or, string, value};
use crate::scripting::failure::bad_argument;

/// What a script can set. It holds until the script ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth: i64,
    decode_depth: i64,
    precision: i64,
    encode_invalid: bool,
    decode_invalid: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1000,
            decode_depth: 1000,
            precision: 14,
            encode_invalid: false,
            decode_invalid: true,
        }
    }
}

/// The settings of a Lua state.
pub(crate) type SharedSettings = Arc<Mutex<Settings>>;

/// Forgets what a script has set.
pub(crate) fn reset(settings: &SharedSettings) {
    *settings.lock() = Settings::default();
}

/// Reads an integer setting from argument `at` and returns the new value.
fn set_integer(
    lua: &Lua,
    args: &MultiValue,
    at: usize,
    of: &str,
    range: (i64, i64),
    setting: &mut i64,
) -> mlua::Result<Value> {
    let given = integer_or(lua, args, at, of, *setting)?;
    if given < range.0 || given > range.1 {
        let why = format!("expected integer between {} and {}", range.0, range.1);
        return Err(bad_argument(lua, at, of, why));
    }
    *setting = given;
    Ok(Value::Integer(given))
}

fn set_flag(args: &MultiValue, at: usize, setting: &mut bool) -> Value {
    match value(args, at) {
        Value::Nil => {}
        Value::Boolean(false) => *setting = false,
        _ => *setting = true,
    }
    Value::Boolean(*setting)
}

pub(super) fn library(lua: &Lua, settings: &SharedSettings) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    let own = Arc::clone(settings);
    let encode = move |lua: &Lua, args: MultiValue| {
        if args.len() != 1 {
            return Err(bad_argument(lua, 1, "encode", "expected 1 argument"));
        }
        let settings = *own.lock();
        lua.create_string(encode::encode(lua, &settings, &value(&args, 1))?)
    };
    table.raw_set("encode", lua.create_function(encode)?)?;
    let own = Arc::clone(settings);
    let decode = move |lua: &Lua, args: MultiValue| {
        if args.len() != 1 {
            return Err(bad_argument(lua, 1, "decode", "expected 1 argument"));
        }
        let settings = *own.lock();
        let text = string(lua, &args, 1, "decode")?;
        decode::decode(lua, &settings, &text.as_bytes())
    };
    table.raw_set("decode", lua.create_function(decode)?)?;
    for (name, range) in [
        ("encode_max_depth", (1, i64::from(i32::MAX))),
        ("decode_max_depth", (1, i64::from(i32::MAX))),
        ("encode_number_precision", (1, 14)),
    ] {
        let own = Arc::clone(settings);
        let set = move |lua: &Lua, args: MultiValue| {
            let mut settings = own.lock();
            let setting = match name {
                "encode_max_depth" => &mut settings.encode_depth,
                "decode_max_depth" => &mut settings.decode_depth,
                _ => &mut settings.precision,
            };
            set_integer(lua, &args, 1, name, range, setting)
        };
        table.raw_set(name, lua.create_function(set)?)?;
    }
    for name in ["encode_invalid_numbers", "decode_invalid_numbers", "encode_keep_buffer"] {
        let own = Arc::clone(settings);
        let set = move |_: &Lua, args: MultiValue| {
            let mut settings = own.lock();
            Ok(match name {
                "encode_invalid_numbers" => set_flag(&args, 1, &mut settings.encode_invalid),
                "decode_invalid_numbers" => set_flag(&args, 1, &mut settings.decode_invalid),
                _ => set_flag(&args, 1, &mut true),
            })
        };
        table.raw_set(name, lua.create_function(set)?)?;
    }
    let own = Arc::clone(settings);
    let sparse = move |lua: &Lua, args: MultiValue| {
        let (mut settings, most) = (own.lock(), i64::from(i32::MAX));
        let of = "encode_sparse_array";
        let convert = set_flag(&args, 1, &mut settings.sparse_convert);
        let ratio = set_integer(lua, &args, 2, of, (0, most), &mut settings.sparse_ratio)?;
        let safe = set_integer(lua, &args, 3, of, (0, most), &mut settings.sparse_safe)?;
        Ok((convert, ratio, safe))
    };
    table.raw_set("encode_sparse_array", lua.create_function(sparse)?)?;
    Ok(table)
}
