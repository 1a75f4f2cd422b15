//! `struct`: numbers and strings as the bytes of C structures.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{integer_or, number, string};
use crate::scripting::failure::{bad_argument, text_error};

/// The most bytes of an integer.
const MOST_INTEGER: usize = 32;
/// The alignment of `!` without a number.
const ALIGNMENT: usize = 8;

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("size", lua.create_function(size)?)?;
    Ok(table)
}

/// An item of a format.
#[derive(Clone, Copy, Debug)]
enum Item {
    Integer {
        size: usize,
        signed: bool,
    },
    Float,
    Double,
    Padding,
    /// Characters; 0 if a number before tells how many.
    Characters(usize),
    ZeroTerminated,
}

impl Item {
    fn size(self) -> usize {
        match self {
            Self::Integer { size, .. } | Self::Characters(size) => size,
            Self::Float => 4,
            Self::Double => 8,
            Self::Padding => 1,
            Self::ZeroTerminated => 0,
        }
    }
}

/// Reads a format item by item.
struct Format<'a> {
    lua: &'a Lua,
    /// The function that reads it.
    of: &'static str,
    rest: &'a [u8],
    big: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, of: &'static str, format: &'a [u8]) -> Self {
        Self { lua, of, rest: format, big: false, align: 1 }
    }

    fn count(&mut self) -> mlua::Result<Option<usize>> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let value = digits.iter().try_fold(0i32, |value, digit| {
            value.checked_mul(10)?.checked_add(i32::from(digit - b'0'))
        });
        let Some(value) = value else {
            return Err(text_error(self.lua, "integral size overflow"));
        };
        Ok((!digits.is_empty()).then(|| usize::try_from(value).unwrap_or(0)))
    }

    fn integer(&mut self, signed: bool) -> mlua::Result<Item> {
        let size = self.count()?.unwrap_or(4);
        if size > MOST_INTEGER {
            let text = format!("integral size {size} is larger than limit of {MOST_INTEGER}");
            return Err(text_error(self.lua, text));
        }
        Ok(Item::Integer { size, signed })
    }

    /// The next item, and the number of bytes to fill before it at this position.
    fn next(&mut self, position: usize) -> mlua::Result<Option<(Item, usize)>> {
        while let Some((option, rest)) = self.rest.split_first() {
            self.rest = rest;
            let fixed = |size: usize, signed: bool| Item::Integer { size, signed };
            let item = match option {
                b' ' => continue,
                b'>' => {
                    self.big = true;
                    continue;
                }
                b'<' => {
                    self.big = false;
                    continue;
                }
                b'!' => {
                    self.align = self.count()?.unwrap_or(ALIGNMENT);
                    if !self.align.is_power_of_two() {
                        let text = format!("alignment {} is not a power of 2", self.align);
                        return Err(text_error(self.lua, text));
                    }
                    continue;
                }
                b'b' => fixed(1, true),
                b'B' => fixed(1, false),
                b'h' => fixed(2, true),
                b'H' => fixed(2, false),
                b'l' => fixed(8, true),
                b'L' | b'T' => fixed(8, false),
                b'i' => self.integer(true)?,
                b'I' => self.integer(false)?,
                b'f' => Item::Float,
                b'd' => Item::Double,
                b'x' => Item::Padding,
                b's' => Item::ZeroTerminated,
                b'c' => Item::Characters(self.count()?.unwrap_or(1)),
                // As in Redis, where only pack and unpack look at each letter.
                other if self.of == "size" && other.is_ascii_alphanumeric() => continue,
                other => {
                    let text = format!("invalid format option '{}'", char::from(*other));
                    return Err(bad_argument(self.lua, 1, self.of, text));
                }
            };
            return Ok(Some((item, self.fill(item, position))));
        }
        Ok(None)
    }

    fn fill(&self, item: Item, position: usize) -> usize {
        let align = item.size().min(self.align);
        match item {
            Item::Characters(_) | Item::ZeroTerminated | Item::Padding => 0,
            _ if align > 1 => {
                // As in C, where a size that is no power of two is rounded to none.
                let mask = align - 1;
                (align - (position & mask)) & mask
            }
            _ => 0,
        }
    }
}

fn ordered(mut bytes: Vec<u8>, big: bool) -> Vec<u8> {
    if big {
        bytes.reverse();
    }
    bytes
}

/// A number as an integer of 64 bits; one that is too large is 0, as C makes of it on x86.
fn to_integer(number: f64) -> u64 {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off")]
    #[expect(clippy::cast_sign_loss, reason = "the number is not negative")]
    match number {
        _ if number < 0.0 => (number as i64).cast_unsigned(),
        _ if number < LIMIT => number as u64,
        _ => 0,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a function that Lua calls")]
fn pack(lua: &Lua, args: MultiValue) -> mlua::Result<LuaString> {
    let format = string(lua, &args, 1, "pack")?;
    let format = format.as_bytes();
    let (mut format, mut out, mut at) = (Format::new(lua, "pack", &format), Vec::new(), 2);
    while let Some((item, fill)) = format.next(out.len())? {
        out.resize(out.len() + fill, 0);
        match item {
            Item::Padding => {
                out.push(0);
                continue;
            }
            Item::Integer { size, .. } => {
                let number = number(lua, &args, at, "pack")?;
                let mut bytes = to_integer(number).to_le_bytes().to_vec();
                bytes.resize(size, 0);
                out.extend(ordered(bytes, format.big));
            }
            Item::Float => {
                #[expect(clippy::cast_possible_truncation, reason = "the format asks for it")]
                let number = number(lua, &args, at, "pack")? as f32;
                out.extend(ordered(number.to_le_bytes().to_vec(), format.big));
            }
            Item::Double => {
                let number = number(lua, &args, at, "pack")?;
                out.extend(ordered(number.to_le_bytes().to_vec(), format.big));
            }
            Item::Characters(size) => {
                let text = string(lua, &args, at, "pack")?;
                let text = text.as_bytes();
                let size = if size == 0 { text.len() } else { size };
                let Some(text) = text.get(..size) else {
                    return Err(bad_argument(lua, at + 1, "pack", "string too short"));
                };
                out.extend_from_slice(text);
            }
            Item::ZeroTerminated => {
                out.extend_from_slice(&string(lua, &args, at, "pack")?.as_bytes());
                out.push(0);
            }
        }
        at += 1;
    }
    lua.create_string(out)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a function that Lua calls")]
fn unpack(lua: &Lua, args: MultiValue) -> mlua::Result<MultiValue> {
    let format = string(lua, &args, 1, "unpack")?;
    let format = format.as_bytes();
    let data = string(lua, &args, 2, "unpack")?;
    let data = data.as_bytes();
    let start = integer_or(lua, &args, 3, "unpack", 1)?;
    if start == 0 {
        return Err(bad_argument(lua, 3, "unpack", "offset must be 1 or greater"));
    }
    // A negative one is far behind the end.
    let mut position = usize::try_from(start.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut format = Format::new(lua, "unpack", &format);
    let mut values: Vec<Value> = Vec::new();
    let short = || bad_argument(lua, 2, "unpack", "data string too short");
    if position > data.len()
        && let Some(first) = format.rest.first()
    {
        // The size of an item is looked at first.
        if matches!(first, b'i' | b'I' | b'c') {
            format.next(position)?;
        }
        return Err(short());
    }
    while let Some((item, fill)) = format.next(position)? {
        position = position.saturating_add(fill);
        let rest = data.get(position..).ok_or_else(short)?;
        let bytes = rest.get(..item.size()).ok_or_else(short)?;
        let mut used = item.size();
        let (value, is_value) = match item {
            Item::Padding => (Value::Nil, false),
            Item::Integer { signed, .. } => (integer(bytes, format.big, signed), true),
            Item::Float => {
                let mut number = [0; 4];
                number.copy_from_slice(&ordered(bytes.to_vec(), format.big));
                (Value::Number(f64::from(f32::from_le_bytes(number))), true)
            }
            Item::Double => {
                let mut number = [0; 8];
                number.copy_from_slice(&ordered(bytes.to_vec(), format.big));
                (Value::Number(f64::from_le_bytes(number)), true)
            }
            Item::Characters(0) => {
                let Some(size) = values.pop().and_then(|size| size.as_f64()) else {
                    return Err(text_error(lua, "format 'c0' needs a previous size"));
                };
                used = usize::try_from(to_integer(size)).unwrap_or(usize::MAX);
                let text = rest.get(..used).ok_or_else(short)?;
                (Value::String(lua.create_string(text)?), true)
            }
            Item::Characters(_) => (Value::String(lua.create_string(bytes)?), true),
            Item::ZeroTerminated => {
                let Some(length) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(text_error(lua, "unfinished string in data"));
                };
                used = length + 1;
                let text = rest.get(..length).unwrap_or_default();
                (Value::String(lua.create_string(text)?), true)
            }
        };
        if is_value {
            values.push(value);
        }
        position += used;
    }
    values.push(Value::Integer(i64::try_from(position).unwrap_or(i64::MAX).saturating_add(1)));
    Ok(MultiValue::from_vec(values))
}

fn integer(bytes: &[u8], big: bool, signed: bool) -> Value {
    let little = ordered(bytes.to_vec(), big);
    let bits = little.iter().take(8).rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    // With more than eight bytes the shift starts anew, as that of C does on x86.
    let width = 8 * u32::try_from(bytes.len()).unwrap_or(8);
    let sign = u64::MAX.wrapping_shl(width.wrapping_sub(1));
    #[expect(clippy::cast_precision_loss, reason = "Lua has only doubles")]
    let number = match signed {
        true if bits & sign != 0 => (bits | sign).cast_signed() as f64,
        _ => bits as f64,
    };
    Value::Number(number)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape of a function that Lua calls")]
fn size(lua: &Lua, args: MultiValue) -> mlua::Result<i64> {
    let format = string(lua, &args, 1, "size")?;
    let format = format.as_bytes();
    let (mut format, mut position) = (Format::new(lua, "size", &format), 0usize);
    while let Some((item, fill)) = format.next(position)? {
        match item {
            Item::ZeroTerminated => {
                return Err(bad_argument(lua, 1, "size", "option 's' has no fixed size"));
            }
            Item::Characters(0) => {
                return Err(bad_argument(lua, 1, "size", "option 'c0' has no fixed size"));
            }
            _ => position = position.saturating_add(fill).saturating_add(item.size()),
        }
    }
    Ok(i64::try_from(position).unwrap_or(i64::MAX))
}
