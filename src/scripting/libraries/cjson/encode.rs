//! Lua values as JSON.

use mlua::{Lua, Table, Value};

use super::Settings;
use crate::scripting::failure::text_error;
use crate::scripting::libraries::numbers::general;

/// Deeper nesting is refused whatever the script has set: threads of a host may have small stacks.
const MOST_DEPTH: i64 = 250;

/// Encodes a value.
pub(super) fn encode(lua: &Lua, settings: &Settings, value: &Value) -> mlua::Result<Vec<u8>> {
    let mut encoder = Encoder { lua, settings, out: Vec::new() };
    encoder.value(value, 0)?;
    Ok(encoder.out)
}

struct Encoder<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, depth: i64) -> mlua::Result<()> {
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            value if *value == Value::NULL => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::String(text) => self.string(&text.as_bytes()),
            #[expect(clippy::cast_precision_loss, reason = "it was a double before")]
            Value::Integer(number) => self.number(*number as f64)?,
            Value::Number(number) => self.number(*number)?,
            Value::Table(table) => self.table(table, depth + 1)?,
            other => {
                let text = format!("Cannot serialise {}: type not supported", other.type_name());
                return Err(text_error(self.lua, text));
            }
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> mlua::Result<()> {
        if !number.is_finite() && !self.settings.encode_invalid {
            let text = "Cannot serialise number: must not be NaN or Inf";
            return Err(text_error(self.lua, text));
        }
        let precision = usize::try_from(self.settings.precision).unwrap_or(14);
        self.out.extend_from_slice(general(number, precision).as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'/' => self.out.extend_from_slice(b"\\/"),
                8 => self.out.extend_from_slice(b"\\b"),
                12 => self.out.extend_from_slice(b"\\f"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                0..32 | 127 => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
    }

    fn table(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        if depth > self.settings.encode_depth.min(MOST_DEPTH) {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(text_error(self.lua, text));
        }
        match self.array_length(table)? {
            Some(length) if length > 0 => self.array(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// The largest index, if all keys are indexes. One beyond 32 bits is none at all, as in C on x86.
    fn array_length(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut most, mut items) = (0, 0);
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                Value::Integer(key) if key >= 1 => {
                    items += 1;
                    if key > most {
                        most = i64::from(i32::try_from(key).unwrap_or(i32::MIN));
                    }
                }
                _ => return Ok(None),
            }
        }
        let Settings { sparse_convert, sparse_ratio, sparse_safe, .. } = *self.settings;
        if sparse_ratio > 0 && most > sparse_ratio.saturating_mul(items) && most > sparse_safe {
            if sparse_convert {
                return Ok(None);
            }
            let text = "Cannot serialise table: excessively sparse array";
            return Err(text_error(self.lua, text));
        }
        Ok(Some(most))
    }

    fn array(&mut self, table: &Table, length: i64, depth: i64) -> mlua::Result<()> {
        self.out.push(b'[');
        for at in 1..=length {
            if at > 1 {
                self.out.push(b',');
            }
            self.value(&table.raw_get::<Value>(at)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => self.string(&text.as_bytes()),
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.value(&key, depth)?;
                    self.out.push(b'"');
                }
                other => {
                    let kind = other.type_name();
                    let text =
                        format!("Cannot serialise {kind}: table key must be a number or string");
                    return Err(text_error(self.lua, text));
                }
            }
            self.out.push(b':');
            self.value(&value, depth)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}
