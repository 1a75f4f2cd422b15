//! `bit`: operations on the bits of 32-bit integers.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::number;

/// Numbers are taken modulo 2^32, rounded to the nearest.
fn bits_of(number: f64) -> u32 {
    // After this addition the low bits of the mantissa hold the integer.
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    u32::try_from((number + SHIFT).to_bits() & 0xFFFF_FFFF).unwrap_or(0)
}

fn result(bits: u32) -> f64 {
    f64::from(bits.cast_signed())
}

fn argument(lua: &Lua, args: &MultiValue, at: usize, of: &str) -> mlua::Result<u32> {
    number(lua, args, at, of).map(bits_of)
}

/// A function of one number and a count of bits.
type Shift = fn(u32, u32) -> u32;

const SHIFTS: [(&str, Shift); 5] = [
    ("lshift", |bits, by| bits << by),
    ("rshift", |bits, by| bits >> by),
    ("arshift", |bits, by| (bits.cast_signed() >> by).cast_unsigned()),
    ("rol", u32::rotate_left),
    ("ror", u32::rotate_right),
];

/// A function of one number.
type One = fn(u32) -> u32;

const ONES: [(&str, One); 3] =
    [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];

/// A function of any number of numbers.
type Many = fn(u32, u32) -> u32;

const MANY: [(&str, Many); 3] =
    [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, shift) in SHIFTS {
        let run = move |lua: &Lua, args: MultiValue| {
            let by = argument(lua, &args, 2, name)? & 31;
            Ok(result(shift(argument(lua, &args, 1, name)?, by)))
        };
        table.raw_set(name, lua.create_function(run)?)?;
    }
    for (name, one) in ONES {
        let run =
            move |lua: &Lua, args: MultiValue| Ok(result(one(argument(lua, &args, 1, name)?)));
        table.raw_set(name, lua.create_function(run)?)?;
    }
    for (name, many) in MANY {
        let run = move |lua: &Lua, args: MultiValue| {
            let mut bits = argument(lua, &args, 1, name)?;
            for at in 2..=args.len() {
                bits = many(bits, argument(lua, &args, at, name)?);
            }
            Ok(result(bits))
        };
        table.raw_set(name, lua.create_function(run)?)?;
    }
    let to_hex = |lua: &Lua, args: MultiValue| {
        let bits = argument(lua, &args, 1, "tohex")?;
        let digits = match args.get(1) {
            None | Some(Value::Nil) => 8,
            Some(_) => argument(lua, &args, 2, "tohex")?.cast_signed(),
        };
        let count = usize::try_from(digits.unsigned_abs().min(8)).unwrap_or(8);
        let text = if digits < 0 { format!("{bits:08X}") } else { format!("{bits:08x}") };
        Ok(text.get(8 - count..).unwrap_or_default().to_owned())
    };
    table.raw_set("tohex", lua.create_function(to_hex)?)?;
    Ok(table)
}
