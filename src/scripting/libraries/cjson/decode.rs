//! JSON as Lua values.

use mlua::{Lua, Value};

use super::Settings;
use crate::scripting::failure::text_error;
use crate::scripting::libraries::numbers::leading;

/// Deeper nesting is refused whatever the script has set: threads of a host may have small stacks.
const MOST_DEPTH: i64 = 250;

/// Decodes a text.
pub(super) fn decode(lua: &Lua, settings: &Settings, text: &[u8]) -> mlua::Result<Value> {
    // UTF-16 and UTF-32 have a zero among the first two bytes.
    if text.len() >= 2 && text.iter().take(2).any(|byte| *byte == 0) {
        return Err(text_error(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder { lua, settings, text, at: 0, depth: 0 };
    let token = decoder.next();
    let value = decoder.value(token)?;
    let token = decoder.next();
    if !matches!(token.kind, Kind::End) {
        return Err(decoder.unexpected("the end", &token));
    }
    Ok(value)
}

enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

struct Token {
    kind: Kind,
    /// Where it begins, from 0.
    at: usize,
}

struct Decoder<'a> {
    lua: &'a Lua,
    settings: &'a Settings,
    text: &'a [u8],
    at: usize,
    depth: i64,
}

impl Decoder<'_> {
    fn unexpected(&self, wanted: &str, found: &Token) -> mlua::Error {
        let name = match &found.kind {
            Kind::Error(text) => text,
            Kind::ObjectBegin => "T_OBJ_BEGIN",
            Kind::ObjectEnd => "T_OBJ_END",
            Kind::ArrayBegin => "T_ARR_BEGIN",
            Kind::ArrayEnd => "T_ARR_END",
            Kind::Text(_) => "T_STRING",
            Kind::Number(_) => "T_NUMBER",
            Kind::Boolean(_) => "T_BOOLEAN",
            Kind::Null => "T_NULL",
            Kind::Colon => "T_COLON",
            Kind::Comma => "T_COMMA",
            Kind::End => "T_END",
        };
        let at = found.at + 1;
        text_error(self.lua, format!("Expected {wanted} but found {name} at character {at}"))
    }

    fn next(&mut self) -> Token {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let at = self.at;
        let mut single = |kind: Kind| {
            self.at += 1;
            kind
        };
        let kind = match self.text.get(at) {
            // As in C, a zero ends the text.
            None | Some(0) => Kind::End,
            Some(b'{') => single(Kind::ObjectBegin),
            Some(b'}') => single(Kind::ObjectEnd),
            Some(b'[') => single(Kind::ArrayBegin),
            Some(b']') => single(Kind::ArrayEnd),
            Some(b':') => single(Kind::Colon),
            Some(b',') => single(Kind::Comma),
            Some(b'"') => return self.string(at),
            Some(b'-' | b'0'..=b'9') => return self.number(at),
            Some(b'+') if self.settings.decode_invalid => return self.number(at),
            Some(_) if self.takes(b"true") => Kind::Boolean(true),
            Some(_) if self.takes(b"false") => Kind::Boolean(false),
            Some(_) if self.takes(b"null") => Kind::Null,
            Some(b'i' | b'I' | b'n' | b'N')
                if self.settings.decode_invalid
                    && leading(self.text.get(at..).unwrap_or_default()).is_some() =>
            {
                return self.number(at);
            }
            Some(_) => Kind::Error("invalid token"),
        };
        Token { kind, at }
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        if found {
            self.at += word.len();
        }
        found
    }

    fn number(&mut self, at: usize) -> Token {
        let rest = self.text.get(at..).unwrap_or_default();
        let invalid = !self.settings.decode_invalid && is_invalid(rest);
        let kind = match leading(rest).filter(|_| !invalid) {
            Some((number, length)) => {
                self.at += length;
                Kind::Number(number)
            }
            None => Kind::Error("invalid number"),
        };
        Token { kind, at }
    }

    fn string(&mut self, at: usize) -> Token {
        let mut out = Vec::new();
        self.at += 1;
        let kind = loop {
            let Some(byte) = self.text.get(self.at).copied().filter(|byte| *byte != 0) else {
                break Kind::Error("unexpected end of string");
            };
            match byte {
                b'"' => {
                    self.at += 1;
                    break Kind::Text(out);
                }
                b'\\' => {
                    let escape = self.text.get(self.at + 1).copied().unwrap_or(0);
                    let plain = match escape {
                        b'"' | b'\\' | b'/' => escape,
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'u' => {
                            if !self.unicode(&mut out) {
                                return Token {
                                    kind: Kind::Error("invalid unicode escape code"),
                                    at: self.at,
                                };
                            }
                            continue;
                        }
                        _ => {
                            return Token { kind: Kind::Error("invalid escape code"), at: self.at };
                        }
                    };
                    out.push(plain);
                    self.at += 2;
                }
                _ => {
                    out.push(byte);
                    self.at += 1;
                }
            }
        };
        let at = if matches!(kind, Kind::Error(_)) { self.at } else { at };
        Token { kind, at }
    }

    fn four_digits(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.iter().try_fold(0, |value, byte| Some(value * 16 + char::from(*byte).to_digit(16)?))
    }

    /// Reads `\u` and four digits, or two of these for a character beyond the first plane.
    fn unicode(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut code) = self.four_digits(self.at + 2) else { return false };
        self.at += 6;
        if (0xD800..0xE000).contains(&code) {
            let second = match self.text.get(self.at..self.at + 2) {
                Some(b"\\u") => self.four_digits(self.at + 2),
                _ => None,
            };
            let second = second.filter(|low| (0xDC00..0xE000).contains(low));
            let Some(low) = second.filter(|_| code < 0xDC00) else {
                self.at -= 6;
                return false;
            };
            code = 0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            self.at += 6;
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        true
    }

    fn value(&mut self, token: Token) -> mlua::Result<Value> {
        Ok(match token.kind {
            Kind::Text(text) => Value::String(self.lua.create_string(text)?),
            Kind::Number(number) => Value::Number(number),
            Kind::Boolean(yes) => Value::Boolean(yes),
            Kind::Null => Value::NULL,
            Kind::ObjectBegin => self.nested(Self::object)?,
            Kind::ArrayBegin => self.nested(Self::array)?,
            _ => return Err(self.unexpected("value", &token)),
        })
    }

    fn nested(&mut self, read: fn(&mut Self) -> mlua::Result<Value>) -> mlua::Result<Value> {
        self.depth += 1;
        if self.depth > self.settings.decode_depth.min(MOST_DEPTH) {
            let (depth, at) = (self.depth, self.at);
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(text_error(self.lua, text));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.kind, Kind::ObjectEnd) {
            return Ok(Value::Table(table));
        }
        loop {
            let Kind::Text(key) = token.kind else {
                return Err(self.unexpected("object key string", &token));
            };
            let colon = self.next();
            if !matches!(colon.kind, Kind::Colon) {
                return Err(self.unexpected("colon", &colon));
            }
            token = self.next();
            let value = self.value(token)?;
            table.raw_set(self.lua.create_string(key)?, value)?;
            token = self.next();
            match token.kind {
                Kind::ObjectEnd => return Ok(Value::Table(table)),
                Kind::Comma => token = self.next(),
                _ => return Err(self.unexpected("comma or object end", &token)),
            }
        }
    }

    fn array(&mut self) -> mlua::Result<Value> {
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if matches!(token.kind, Kind::ArrayEnd) {
            return Ok(Value::Table(table));
        }
        for at in 1.. {
            let value = self.value(token)?;
            table.raw_set(at, value)?;
            token = self.next();
            match token.kind {
                Kind::ArrayEnd => break,
                Kind::Comma => token = self.next(),
                _ => return Err(self.unexpected("comma or array end", &token)),
            }
        }
        Ok(Value::Table(table))
    }
}

/// Whether a number is hexadecimal, infinite or no number, which JSON does not allow.
fn is_invalid(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match (text.first(), text.get(1)) {
        (Some(b'0'), Some(next)) => matches!(next, b'x' | b'X' | b'0'..=b'9'),
        (Some(first), _) => !first.is_ascii_digit(),
        _ => true,
    }
}
