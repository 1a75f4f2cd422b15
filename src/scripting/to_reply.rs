//! Lua values that a script returns, as replies.

use bytes::Bytes;
use mlua::{Table, Value};

use crate::commands::Reply;

/// Deeper nesting is refused: a table may hold itself, and threads of a host may have small stacks.
const MOST_DEPTH: usize = 250;

/// Why a value is no reply.
#[derive(Debug)]
pub(super) enum NoReply {
    /// It is nested too deep.
    TooDeep,
    /// Lua failed, for example for lack of memory.
    Lua,
}

impl From<mlua::Error> for NoReply {
    fn from(_: mlua::Error) -> Self {
        Self::Lua
    }
}

type Converted = std::result::Result<Reply, NoReply>;

/// Converts what a script returned. `resp3`: the script called `redis.setresp(3)`.
pub(super) fn to_reply(value: &Value, resp3: bool) -> Converted {
    convert(value, resp3, 0)
}

fn bytes(text: &mlua::LuaString) -> Bytes {
    Bytes::copy_from_slice(&text.as_bytes())
}

/// A number as C converts it to an integer on x86-64.
fn integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    let whole = number as i64;
    if (-LIMIT..LIMIT).contains(&number) { whole } else { i64::MIN }
}

fn convert(value: &Value, resp3: bool, depth: usize) -> Converted {
    if depth > MOST_DEPTH {
        return Err(NoReply::TooDeep);
    }
    Ok(match value {
        Value::String(text) => Reply::Bulk(bytes(text)),
        Value::Boolean(yes) if resp3 => Reply::Bool(*yes),
        Value::Boolean(true) => Reply::Int(1),
        Value::Number(number) => Reply::Int(integer(*number)),
        Value::Integer(number) => Reply::Int(*number),
        Value::Table(table) => return of_table(table, resp3, depth),
        _ => Reply::Nil,
    })
}

fn of_table(table: &Table, resp3: bool, depth: usize) -> Converted {
    if let Value::String(text) = table.raw_get("err")? {
        return Ok(Reply::Error(String::from_utf8_lossy(&text.as_bytes()).into_owned()));
    }
    if let Value::String(text) = table.raw_get("ok")? {
        return Ok(Reply::Text(bytes(&text)));
    }
    match table.raw_get("double")? {
        Value::Number(number) => return Ok(Reply::Double(number)),
        #[expect(clippy::cast_precision_loss, reason = "Lua has only doubles")]
        Value::Integer(number) => return Ok(Reply::Double(number as f64)),
        _ => {}
    }
    if let Value::String(digits) = table.raw_get("big_number")? {
        let digits: Vec<u8> =
            digits.as_bytes().iter().map(|byte| without_line_end(*byte)).collect();
        return Ok(Reply::BigNumber(digits.into()));
    }
    if let Value::Table(verbatim) = table.raw_get("verbatim_string")?
        && let Value::String(format) = verbatim.raw_get("format")?
        && let Value::String(text) = verbatim.raw_get("string")?
    {
        let mut letters = *b"   ";
        letters.iter_mut().zip(format.as_bytes().iter()).for_each(|(to, from)| *to = *from);
        return Ok(Reply::Verbatim(letters, bytes(&text)));
    }
    if let Value::Table(map) = table.raw_get("map")? {
        let mut pairs = Vec::new();
        for pair in map.pairs::<Value, Value>() {
            let (key, value) = pair?;
            pairs.push((convert(&key, resp3, depth + 1)?, convert(&value, resp3, depth + 1)?));
        }
        return Ok(Reply::Map(pairs));
    }
    if let Value::Table(set) = table.raw_get("set")? {
        let keys = set.pairs::<Value, Value>().map(|pair| convert(&pair?.0, resp3, depth + 1));
        return keys.collect::<std::result::Result<_, _>>().map(Reply::Set);
    }
    let mut items = Vec::new();
    for at in 1.. {
        match table.raw_get(at)? {
            Value::Nil => break,
            item => items.push(convert(&item, resp3, depth + 1)?),
        }
    }
    Ok(Reply::Array(items))
}

fn without_line_end(byte: u8) -> u8 {
    if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }
}
