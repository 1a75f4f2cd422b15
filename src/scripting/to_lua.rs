//! Replies of commands as Lua values.

use std::sync::atomic::Ordering;

use mlua::{Lua, Table, Value};

use super::lua_state::Shared;
use crate::commands::Reply;

/// Converts a reply of a command to the value that `redis.call` returns.
pub(super) fn to_lua(lua: &Lua, shared: &Shared, reply: &Reply) -> mlua::Result<Value> {
    let resp3 = shared.protocol.load(Ordering::Relaxed) == 3;
    convert(lua, resp3, reply)
}

/// What a Lua string, or an entry of a table, takes beside its bytes. A table of twice the entries
/// is made before the old one is freed.
const OVERHEAD: usize = 160;

/// The most bytes that the Lua value of a reply takes.
pub(super) fn lua_bytes(reply: &Reply) -> usize {
    let pair = |(first, second): &(Reply, Reply)| lua_bytes(first) + lua_bytes(second);
    let parts = match reply {
        Reply::Bulk(bytes) | Reply::Text(bytes) | Reply::BigNumber(bytes) => bytes.len(),
        Reply::Verbatim(_, bytes) => bytes.len(),
        Reply::Error(text) => text.len(),
        Reply::Array(items) | Reply::Push(items) | Reply::Set(items) => {
            items.iter().map(lua_bytes).sum()
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => pairs.iter().map(pair).sum(),
        _ => 0,
    };
    // Replies that are fields of a table have a table of their own.
    parts + 2 * OVERHEAD
}

/// The bytes that a table of these strings takes.
pub(super) fn lua_bytes_of_strings(items: &[&[u8]]) -> usize {
    items.iter().map(|item| item.len() + OVERHEAD).sum::<usize>() + OVERHEAD
}

/// An error of a command as a script sees it: with a code, without line ends around the message.
pub(super) fn error_text(text: &str) -> String {
    let trimmed = |text: &str| text.trim_matches(['\r', '\n']).to_owned();
    match text.split_once(' ') {
        Some((code, message)) => format!("{code} {}", trimmed(message)),
        None => format!("ERR {}", trimmed(text)),
    }
}

fn convert(lua: &Lua, resp3: bool, reply: &Reply) -> mlua::Result<Value> {
    let string = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
    let field = |name: &str, value: Value| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil | Reply::NilArray if resp3 => Ok(Value::Nil),
        Reply::Nil | Reply::NilArray => Ok(Value::Boolean(false)),
        Reply::Status(text) => lua.create_table_from([("ok", *text)]).map(Value::Table),
        Reply::Text(text) => field("ok", string(text)?),
        Reply::Error(text) => field("err", string(error_text(text).as_bytes())?),
        #[expect(clippy::cast_precision_loss, reason = "Lua has only doubles")]
        Reply::Int(number) => Ok(Value::Number(*number as f64)),
        Reply::Bulk(bytes) => string(bytes),
        Reply::Double(number) if resp3 => field("double", Value::Number(*number)),
        Reply::Double(number) => string(Reply::double_text(*number).as_bytes()),
        Reply::Bool(yes) => Ok(Value::Boolean(*yes)),
        Reply::BigNumber(digits) => string(digits),
        Reply::Verbatim(_, text) => string(text),
        Reply::Array(items) | Reply::Push(items) => {
            array(lua, resp3, items.iter()).map(Value::Table)
        }
        Reply::Set(items) if resp3 => {
            let set = lua.create_table_with_capacity(0, items.len())?;
            for item in items {
                set.raw_set(convert(lua, resp3, item)?, true)?;
            }
            field("set", Value::Table(set))
        }
        Reply::Set(items) => array(lua, resp3, items.iter()).map(Value::Table),
        Reply::Map(pairs) if resp3 => {
            let map = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                map.raw_set(convert(lua, resp3, key)?, convert(lua, resp3, value)?)?;
            }
            field("map", Value::Table(map))
        }
        Reply::Pairs(pairs) if resp3 => {
            let all = lua.create_table_with_capacity(pairs.len(), 0)?;
            for (at, (first, second)) in pairs.iter().enumerate() {
                all.raw_set(at + 1, array(lua, resp3, [first, second].into_iter())?)?;
            }
            Ok(Value::Table(all))
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            let items = pairs.iter().flat_map(|(first, second)| [first, second]);
            array(lua, resp3, items).map(Value::Table)
        }
    }
}

fn array<'r>(
    lua: &Lua,
    resp3: bool,
    items: impl Iterator<Item = &'r Reply>,
) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(items.size_hint().0, 0)?;
    for (at, item) in items.enumerate() {
        table.raw_set(at + 1, convert(lua, resp3, item)?)?;
    }
    Ok(table)
}
