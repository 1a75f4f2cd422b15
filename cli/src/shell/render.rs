//! Rendering of replies for people and for programs.

use std::io::{self, Write};

use lsmkv::Reply;
use serde_json::{Value, json};

use crate::transfer::encode_json;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The style of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// With types, quotes and numbers.
    Readable { colours: bool },
    /// One line of JSON.
    Json,
    /// The bytes alone, one line for each value.
    Raw,
}

/// Writes a reply and a line feed.
pub(super) fn write(reply: &Reply, style: Style, out: &mut impl Write) -> io::Result<()> {
    match style {
        Style::Readable { colours } => Readable { colours }.write(reply, "", out),
        Style::Json => writeln!(out, "{}", json_of(reply)),
        Style::Raw => write_raw(reply, out),
    }
}

fn write_raw(reply: &Reply, out: &mut impl Write) -> io::Result<()> {
    match reply {
        Reply::Nil | Reply::NilArray => writeln!(out),
        Reply::Status(text) => writeln!(out, "{text}"),
        Reply::Error(text) => writeln!(out, "{text}"),
        Reply::Int(number) => writeln!(out, "{number}"),
        Reply::Bool(yes) => writeln!(out, "{yes}"),
        Reply::Double(number) => writeln!(out, "{}", Reply::double_text(*number)),
        Reply::Bulk(bytes)
        | Reply::Text(bytes)
        | Reply::BigNumber(bytes)
        | Reply::Verbatim(_, bytes) => {
            out.write_all(bytes)?;
            writeln!(out)
        }
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            items.iter().try_for_each(|item| write_raw(item, out))
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => pairs.iter().try_for_each(|(a, b)| {
            write_raw(a, out)?;
            write_raw(b, out)
        }),
    }
}

fn json_of(reply: &Reply) -> Value {
    match reply {
        Reply::Nil | Reply::NilArray => Value::Null,
        Reply::Status(text) => Value::from(*text),
        Reply::Error(text) => json!({ "error": text }),
        Reply::Int(number) => Value::from(*number),
        // JSON has no infinity.
        Reply::Double(number) => serde_json::Number::from_f64(*number)
            .map_or_else(|| Value::from(Reply::double_text(*number)), Value::Number),
        Reply::Bool(yes) => Value::from(*yes),
        Reply::Bulk(bytes)
        | Reply::Text(bytes)
        | Reply::BigNumber(bytes)
        | Reply::Verbatim(_, bytes) => encode_json(bytes),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            items.iter().map(json_of).collect()
        }
        Reply::Pairs(pairs) => pairs.iter().map(|(a, b)| json!([json_of(a), json_of(b)])).collect(),
        Reply::Map(pairs) => json_of_map(pairs),
    }
}

/// An object if every key is text, else a list of pairs.
fn json_of_map(pairs: &[(Reply, Reply)]) -> Value {
    let named = pairs.iter().map(|(key, value)| match key {
        Reply::Bulk(bytes) => Some((std::str::from_utf8(bytes).ok()?.to_owned(), json_of(value))),
        Reply::Status(text) => Some(((*text).to_owned(), json_of(value))),
        _ => None,
    });
    match named.collect::<Option<serde_json::Map<_, _>>>() {
        Some(object) if object.len() == pairs.len() => Value::Object(object),
        _ => pairs.iter().map(|(a, b)| json!([json_of(a), json_of(b)])).collect(),
    }
}

/// Quotes bytes. Control characters and bytes that are not UTF-8 are escaped.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        text.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}

struct Readable {
    colours: bool,
}

impl Readable {
    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
    }

    /// A reply that fits one line, without and with colours.
    fn scalar(&self, reply: &Reply) -> Option<(String, String)> {
        let (colour, text) = match reply {
            Reply::Nil | Reply::NilArray => (DIM, "(nil)".to_owned()),
            Reply::Status(text) => (GREEN, (*text).to_owned()),
            Reply::Error(text) => (RED, format!("(error) {text}")),
            Reply::Int(number) => (YELLOW, format!("(integer) {number}")),
            Reply::Double(number) => (YELLOW, format!("(double) {}", Reply::double_text(*number))),
            Reply::Bool(yes) => (YELLOW, format!("({yes})")),
            Reply::BigNumber(digits) => (YELLOW, String::from_utf8_lossy(digits).into_owned()),
            Reply::Text(text) => (GREEN, String::from_utf8_lossy(text).into_owned()),
            Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => ("", quoted(bytes)),
            Reply::Array(items) if items.is_empty() => (DIM, "(empty array)".to_owned()),
            Reply::Set(items) if items.is_empty() => (DIM, "(empty set)".to_owned()),
            Reply::Map(pairs) if pairs.is_empty() => (DIM, "(empty hash)".to_owned()),
            Reply::Pairs(pairs) if pairs.is_empty() => (DIM, "(empty array)".to_owned()),
            _ => return None,
        };
        let painted = if colour.is_empty() { text.clone() } else { self.paint(colour, &text) };
        Some((text, painted))
    }

    /// Writes a reply; lines after the first start with `indent`.
    fn write(&self, reply: &Reply, indent: &str, out: &mut impl Write) -> io::Result<()> {
        if let Some((_, painted)) = self.scalar(reply) {
            return writeln!(out, "{painted}");
        }
        match reply {
            Reply::Array(items) => self.items(items, ')', indent, out),
            Reply::Set(items) => self.items(items, '~', indent, out),
            Reply::Push(items) => self.items(items, '>', indent, out),
            Reply::Map(pairs) => self.pairs(pairs, '#', indent, out),
            Reply::Pairs(pairs) => self.pairs(pairs, ')', indent, out),
            _ => Ok(()),
        }
    }

    fn number(&self, at: usize, count: usize, mark: char, indent: &str) -> (String, String) {
        let width = count.to_string().len();
        let indent = if at == 0 { "" } else { indent };
        let label = format!("{:>width$}{mark} ", at + 1);
        (indent.to_owned(), label)
    }

    fn items(
        &self,
        items: &[Reply],
        mark: char,
        indent: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for (at, item) in items.iter().enumerate() {
            let (before, label) = self.number(at, items.len(), mark, indent);
            write!(out, "{before}{}", self.paint(DIM, &label))?;
            self.write(item, &format!("{indent}{:1$}", "", label.len()), out)?;
        }
        Ok(())
    }

    /// Writes pairs with their second parts aligned.
    fn pairs(
        &self,
        pairs: &[(Reply, Reply)],
        mark: char,
        indent: &str,
        out: &mut impl Write,
    ) -> io::Result<()> {
        const WIDEST: usize = 40;
        let keys: Vec<_> =
            pairs.iter().map(|(key, _)| self.scalar(key).unwrap_or_default()).collect();
        let width = keys.iter().map(|key| key.0.chars().count()).max().unwrap_or(0).min(WIDEST);
        for (at, ((plain, painted), (_, value))) in keys.iter().zip(pairs).enumerate() {
            let (before, label) = self.number(at, pairs.len(), mark, indent);
            let pad = width.saturating_sub(plain.chars().count());
            let arrow = self.paint(DIM, "=>");
            write!(out, "{before}{}{painted}{:pad$} {arrow} ", self.paint(DIM, &label), "")?;
            let under = label.len() + plain.chars().count() + pad + 4;
            self.write(value, &format!("{indent}{:under$}", ""), out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(bytes::Bytes::copy_from_slice(text.as_bytes()))
    }

    fn shown(reply: &Reply, style: Style) -> String {
        let mut out = Vec::new();
        write(reply, style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn nested() -> Reply {
        let map = Reply::Map(vec![(bulk("a"), Reply::Int(1)), (bulk("long"), Reply::Nil)]);
        Reply::Array(vec![bulk("x"), Reply::Array(vec![Reply::OK, map]), Reply::Array(vec![])])
    }

    #[test]
    fn nested_replies_are_numbered_and_indented() {
        let expected = "1) \"x\"\n\
                        2) 1) OK\n   \
                           2) 1# \"a\"    => (integer) 1\n      \
                              2# \"long\" => (nil)\n\
                        3) (empty array)\n";
        assert_eq!(shown(&nested(), Style::Readable { colours: false }), expected);
    }

    #[test]
    fn numbers_of_long_lists_line_up() {
        let items = (0..10).map(Reply::Int).collect();
        let text = shown(&Reply::Array(items), Style::Readable { colours: false });
        assert!(text.starts_with(" 1) (integer) 0\n 2) "), "{text}");
        assert!(text.ends_with("10) (integer) 9\n"), "{text}");
    }

    #[test]
    fn json_and_raw_carry_everything() {
        let json = shown(&nested(), Style::Json);
        assert_eq!(json, "[\"x\",[\"OK\",{\"a\":1,\"long\":null}],[]]\n");
        assert_eq!(shown(&nested(), Style::Raw), "x\nOK\na\n1\nlong\n\n");
        let odd = Reply::Bulk(bytes::Bytes::from_static(b"\xff"));
        assert_eq!(shown(&odd, Style::Json), "{\"base64\":\"/w==\"}\n");
        assert_eq!(shown(&Reply::Double(f64::INFINITY), Style::Json), "\"inf\"\n");
    }

    #[test]
    fn only_what_is_no_text_is_escaped() {
        assert_eq!(quoted("ü \"\\\n\x07".as_bytes()), "\"ü \\\"\\\\\\n\\x07\"");
        assert_eq!(quoted(b"a\xffb"), "\"a\\xffb\"");
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        assert!(shown(&Reply::OK, Style::Readable { colours: true }).contains(GREEN));
        assert_eq!(shown(&Reply::OK, Style::Readable { colours: false }), "OK\n");
    }
}
