//! `cmsgpack`: MessagePack.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{integer_or, string};
use crate::scripting::failure::{bad_argument, text_error};

/// Tables that are nested deeper are packed as nil, as in Redis.
const MOST_NESTED: usize = 16;
/// Deeper nesting is refused when unpacking: threads of a host may have small stacks.
const MOST_DEPTH: usize = 250;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    let unpack = |lua: &Lua, args: MultiValue| unpacked(lua, &args, "unpack", 0, 0);
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    let one = |lua: &Lua, args: MultiValue| {
        let offset = integer_or(lua, &args, 2, "unpack_one", 0)?;
        unpacked(lua, &args, "unpack_one", 1, offset)
    };
    table.raw_set("unpack_one", lua.create_function(one)?)?;
    let limit = |lua: &Lua, args: MultiValue| {
        let limit = integer_or(lua, &args, 2, "unpack_limit", 0)?;
        let offset = integer_or(lua, &args, 3, "unpack_limit", 0)?;
        unpacked(lua, &args, "unpack_limit", limit, offset)
    };
    table.raw_set("unpack_limit", lua.create_function(limit)?)?;
    Ok(table)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a function that Lua calls")]
fn pack(lua: &Lua, args: MultiValue) -> mlua::Result<mlua::LuaString> {
    if args.is_empty() {
        return Err(bad_argument(lua, 0, "pack", "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for value in &args {
        pack_value(&mut out, value, 0)?;
    }
    lua.create_string(out)
}

fn pack_value(out: &mut Vec<u8>, value: &Value, depth: usize) -> mlua::Result<()> {
    match value {
        Value::Boolean(yes) => out.push(if *yes { 0xC3 } else { 0xC2 }),
        Value::String(text) => {
            let text = text.as_bytes();
            pack_length(out, text.len(), &[(31, 0xA0), (0xFF, 0xD9), (0xFFFF, 0xDA)], 0xDB);
            out.extend_from_slice(&text);
        }
        Value::Integer(number) => pack_integer(out, *number),
        Value::Number(number) => pack_number(out, *number),
        Value::Table(table) if depth < MOST_NESTED => return pack_table(out, table, depth + 1),
        _ => out.push(0xC0),
    }
    Ok(())
}

/// Writes a length with the first mark whose limit it does not exceed. A mark with a limit below 32
/// holds the length itself.
fn pack_length(out: &mut Vec<u8>, length: usize, marks: &[(usize, u8)], last: u8) {
    let bytes = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    let [_, _, high, low] = bytes;
    match marks.iter().find(|(limit, _)| length <= *limit) {
        Some((limit, mark)) if *limit < 32 => out.push(mark | low),
        Some((0xFF, mark)) => out.extend_from_slice(&[*mark, low]),
        Some((_, mark)) => out.extend_from_slice(&[*mark, high, low]),
        None => {
            out.push(last);
            out.extend_from_slice(&bytes);
        }
    }
}

fn pack_number(out: &mut Vec<u8>, number: f64) {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is compared afterwards")]
    #[expect(clippy::cast_precision_loss, reason = "it is compared afterwards")]
    let whole = ((-LIMIT..LIMIT).contains(&number) && number as i64 as f64 == number)
        .then_some(number as i64);
    if let Some(whole) = whole {
        return pack_integer(out, whole);
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is compared afterwards")]
    let short = number as f32;
    if f64::from(short) == number {
        out.push(0xCA);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xCB);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_integer(out: &mut Vec<u8>, number: i64) {
    let bytes = number.to_be_bytes();
    let (mark, size) = match number {
        -32..=0x7F => (None, 1),
        0x80..=0xFF => (Some(0xCC), 1),
        0x100..=0xFFFF => (Some(0xCD), 2),
        0x1_0000..=0xFFFF_FFFF => (Some(0xCE), 4),
        0x1_0000_0000.. => (Some(0xCF), 8),
        -0x80..=-33 => (Some(0xD0), 1),
        -0x8000..=-0x81 => (Some(0xD1), 2),
        -0x8000_0000..=-0x8001 => (Some(0xD2), 4),
        _ => (Some(0xD3), 8),
    };
    out.extend(mark);
    out.extend_from_slice(bytes.get(8 - size..).unwrap_or_default());
}

fn pack_table(out: &mut Vec<u8>, table: &Table, depth: usize) -> mlua::Result<()> {
    let (mut count, mut most, mut is_array) = (0usize, 0, true);
    for pair in table.pairs::<Value, Value>() {
        count += 1;
        match pair?.0 {
            Value::Integer(key) if key > 0 => most = key.max(most),
            _ => is_array = false,
        }
    }
    if is_array && usize::try_from(most) == Ok(count) {
        pack_length(out, count, &[(15, 0x90), (0xFFFF, 0xDC)], 0xDD);
        for at in 1..=count {
            pack_value(out, &table.raw_get::<Value>(at)?, depth)?;
        }
        return Ok(());
    }
    pack_length(out, count, &[(15, 0x80), (0xFFFF, 0xDE)], 0xDF);
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        pack_value(out, &key, depth)?;
        pack_value(out, &value, depth)?;
    }
    Ok(())
}

/// Unpacks `limit` values from `offset` on, or all if both are 0.
fn unpacked(
    lua: &Lua,
    args: &MultiValue,
    of: &str,
    limit: i64,
    offset: i64,
) -> mlua::Result<MultiValue> {
    let text = string(lua, args, 1, of)?;
    let bytes = text.as_bytes();
    let len = bytes.len();
    if offset < 0 || limit < 0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(text_error(lua, text));
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if start > len {
        let text = format!("Start offset {offset} greater than input length {len}.");
        return Err(text_error(lua, text));
    }
    let all = limit == 0 && offset == 0;
    let mut input = Input { lua, rest: bytes.get(start..).unwrap_or_default() };
    let mut values = MultiValue::new();
    let mut left = if all { i64::MAX } else { limit };
    while left > 0 && !input.rest.is_empty() {
        values.push_back(input.value(0)?);
        left -= 1;
    }
    if !all {
        let next = if input.rest.is_empty() {
            -1
        } else {
            i64::try_from(len - input.rest.len()).unwrap_or(-1)
        };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

struct Input<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn bad(&self) -> mlua::Error {
        text_error(self.lua, "Bad data format in input.")
    }

    fn take(&mut self, count: usize) -> mlua::Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(text_error(self.lua, "Missing bytes in input."));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn unsigned(&mut self, count: usize) -> mlua::Result<u64> {
        Ok(self.take(count)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A number of two's complement of this many bytes.
    fn signed(&mut self, count: u32) -> mlua::Result<i64> {
        let unused = 64 - 8 * count;
        let bits = self.unsigned(usize::try_from(count).unwrap_or(0))?;
        Ok((bits << unused).cast_signed() >> unused)
    }

    fn length(&mut self, bytes: usize) -> mlua::Result<usize> {
        Ok(usize::try_from(self.unsigned(bytes)?).unwrap_or(usize::MAX))
    }

    fn text(&mut self, length: usize) -> mlua::Result<Value> {
        let bytes = self.take(length)?;
        self.lua.create_string(bytes).map(Value::String)
    }

    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        if depth > MOST_DEPTH {
            return Err(self.bad());
        }
        let [mark] = self.take(1)? else { return Err(self.bad()) };
        #[expect(clippy::cast_precision_loss, reason = "Lua has only doubles")]
        let number = |bits: u64| Value::Number(bits as f64);
        #[expect(clippy::cast_precision_loss, reason = "Lua has only doubles")]
        let integer = |number: i64| Value::Number(number as f64);
        Ok(match mark {
            0x00..=0x7F => number(u64::from(*mark)),
            0x80..=0x8F => self.map(usize::from(mark & 15), depth)?,
            0x90..=0x9F => self.array(usize::from(mark & 15), depth)?,
            0xA0..=0xBF => self.text(usize::from(mark & 31))?,
            0xC0 => Value::Nil,
            0xC2 => Value::Boolean(false),
            0xC3 => Value::Boolean(true),
            0xD9 => {
                let length = self.length(1)?;
                self.text(length)?
            }
            0xDA => {
                let length = self.length(2)?;
                self.text(length)?
            }
            0xDB => {
                let length = self.length(4)?;
                self.text(length)?
            }
            0xCA => {
                let bits = u32::try_from(self.unsigned(4)?).unwrap_or(0);
                Value::Number(f64::from(f32::from_bits(bits)))
            }
            0xCB => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xCC => number(self.unsigned(1)?),
            0xCD => number(self.unsigned(2)?),
            0xCE => number(self.unsigned(4)?),
            // As in Redis, whose Lua has signed integers only.
            0xCF => integer(self.unsigned(8)?.cast_signed()),
            0xD0 => integer(self.signed(1)?),
            0xD1 => integer(self.signed(2)?),
            0xD2 => integer(self.signed(4)?),
            0xD3 => integer(self.signed(8)?),
            0xDC => {
                let length = self.length(2)?;
                self.array(length, depth)?
            }
            0xDD => {
                let length = self.length(4)?;
                self.array(length, depth)?
            }
            0xDE => {
                let length = self.length(2)?;
                self.map(length, depth)?
            }
            0xDF => {
                let length = self.length(4)?;
                self.map(length, depth)?
            }
            0xE0..=0xFF => integer(i64::from(mark.cast_signed())),
            _ => return Err(self.bad()),
        })
    }

    fn array(&mut self, length: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for at in 1..=length {
            table.raw_set(at, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err(text_error(self.lua, "table index is nil")),
                Value::Number(number) if number.is_nan() => {
                    return Err(text_error(self.lua, "table index is NaN"));
                }
                _ => {}
            }
            table.raw_set(key, value)?;
        }
        Ok(Value::Table(table))
    }
}
