//! Keys as lines of JSON.
//!
//! ```text
//! {"db":0,"key":"user:1","type":"hash","expires":1700000000000,"value":[["name","alice"]]}
//! {"db":0,"key":"queue","type":"list","value":["a","b"],"more":true}
//! {"db":0,"key":"queue","type":"list","value":["c"],"continued":true}
//! {"at":1048576,"db":0,"key":"page","type":"string","value":"...","continued":true}
//! ```
//!
//! `value` is a string, a list of elements or members, or a list of pairs: field and value, member
//! and score. A big key takes several adjacent lines. `at` is the offset of a part of a string;
//! between two parts there may be zeros that no line tells. `expires` is in milliseconds since
//! 1970. Bytes that are not UTF-8 are `{"base64":"..."}`. Scores are numbers; infinite scores and
//! the negative zero are text, because JSON numbers cannot represent them.

use std::io::{BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Body, Chunk, Sink, Source, score_text};
use crate::failure::Failure;

/// Encodes bytes as JSON.
pub(crate) fn encode(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// Decodes the output of [`encode`].
pub(crate) fn decode(value: &Value) -> Option<Bytes> {
    match value {
        Value::String(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
        Value::Object(object) => {
            STANDARD.decode(object.get("base64")?.as_str()?).ok().map(Bytes::from)
        }
        _ => None,
    }
}

fn encode_score(score: f64) -> Value {
    let plain = score.is_finite() && score.to_bits() != (-0.0f64).to_bits();
    let number = plain.then(|| serde_json::Number::from_f64(score)).flatten();
    number.map_or_else(|| Value::from(score_text(score)), Value::Number)
}

fn decode_score(value: &Value) -> Option<f64> {
    let score = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    (!score.is_nan()).then_some(score)
}

fn encode_body(body: &Body) -> Value {
    match body {
        Body::String { bytes, .. } => encode(bytes),
        Body::List(members) | Body::Set(members) => members.iter().map(|it| encode(it)).collect(),
        Body::Hash(pairs) => {
            pairs.iter().map(|(field, value)| json!([encode(field), encode(value)])).collect()
        }
        Body::ZSet(scored) => scored
            .iter()
            .map(|(member, score)| json!([encode(member), encode_score(*score)]))
            .collect(),
    }
}

fn decode_body(kind: &str, value: &Value, at: u64) -> Option<Body> {
    fn pairs<T>(value: &Value, second: impl Fn(&Value) -> Option<T>) -> Option<Vec<(Bytes, T)>> {
        let pair = |pair: &Value| match pair.as_array()?.as_slice() {
            [a, b] => Some((decode(a)?, second(b)?)),
            _ => None,
        };
        value.as_array()?.iter().map(pair).collect()
    }
    let list = || value.as_array()?.iter().map(decode).collect::<Option<Vec<_>>>();
    Some(match kind {
        "string" => Body::String { at, bytes: decode(value)? },
        "list" => Body::List(list()?),
        "set" => Body::Set(list()?),
        "hash" => Body::Hash(pairs(value, decode)?),
        "zset" => Body::ZSet(pairs(value, decode_score)?),
        _ => return None,
    })
}

/// Writes keys as lines of JSON.
pub(crate) struct JsonSink<W> {
    out: W,
}

impl<W: Write> JsonSink<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write> Sink for JsonSink<W> {
    fn put(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let mut line = Map::new();
        line.insert("db".into(), chunk.database.into());
        line.insert("key".into(), encode(&chunk.key));
        line.insert("type".into(), chunk.body.type_name().into());
        if chunk.expire_ms > 0 {
            line.insert("expires".into(), chunk.expire_ms.into());
        }
        if let Body::String { at: at @ 1.., .. } = chunk.body {
            line.insert("at".into(), at.into());
        }
        line.insert("value".into(), encode_body(&chunk.body));
        if !chunk.first {
            line.insert("continued".into(), true.into());
        }
        if !chunk.last {
            line.insert("more".into(), true.into());
        }
        Ok(writeln!(self.out, "{}", Value::Object(line))?)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Reads keys from lines of JSON.
pub(crate) struct JsonSource<R> {
    input: R,
    line: String,
    number: u64,
}

impl<R: BufRead> JsonSource<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, line: String::new(), number: 0 }
    }

    fn parse(&self) -> Option<Chunk> {
        let value: Value = serde_json::from_str(&self.line).ok()?;
        let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or(false);
        let number = |name: &str| value.get(name).map_or(Some(0), Value::as_u64);
        Some(Chunk {
            database: u32::try_from(number("db")?).ok()?,
            key: decode(value.get("key")?)?,
            expire_ms: number("expires")?,
            first: !flag("continued"),
            last: !flag("more"),
            body: decode_body(value.get("type")?.as_str()?, value.get("value")?, number("at")?)?,
        })
    }
}

impl<R: BufRead> Source for JsonSource<R> {
    fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        loop {
            self.line.clear();
            if self.input.read_line(&mut self.line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.line.trim().is_empty() {
                continue;
            }
            let broken = || Failure::new(format!("line {} is no key of a dump", self.number));
            return self.parse().map(Some).ok_or_else(broken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &[u8]) -> Bytes {
        Bytes::copy_from_slice(text)
    }

    #[test]
    fn every_type_reads_back_with_any_bytes() {
        let odd = b"\0\xff\"\\\n";
        let bodies = [
            Body::whole_string(bytes(odd)),
            Body::String { at: 1 << 20, bytes: bytes(odd) },
            Body::Hash(vec![(bytes(b"f"), bytes(odd)), (bytes(odd), bytes(b""))]),
            Body::List(vec![bytes(b"a"), bytes(odd)]),
            Body::Set(vec![bytes("ü".as_bytes())]),
            Body::ZSet(vec![
                (bytes(b"a"), 0.1),
                (bytes(b"b"), f64::NEG_INFINITY),
                (bytes(b"c"), 1e-300),
                (bytes(b"d"), 12_345_678_901_234_567.0),
            ]),
        ];
        let mut sink = JsonSink::new(Vec::new());
        let chunks: Vec<Chunk> = bodies
            .into_iter()
            .zip(0..)
            .map(|(body, n)| Chunk {
                database: n,
                key: bytes(odd),
                expire_ms: u64::from(n) * 7,
                first: n % 2 == 0,
                last: n % 3 == 0,
                body,
            })
            .collect();
        chunks.iter().for_each(|chunk| sink.put(chunk).unwrap());
        let mut source = JsonSource::new(&sink.out[..]);
        for chunk in &chunks {
            assert_eq!(source.next().unwrap().as_ref(), Some(chunk));
        }
        assert_eq!(source.next().unwrap(), None);
    }

    #[test]
    fn the_negative_zero_keeps_its_sign() {
        let read = decode_score(&encode_score(-0.0)).unwrap();
        assert_eq!(read.to_bits(), (-0.0f64).to_bits());
        assert_eq!(decode_score(&json!("nan")), None);
    }

    #[test]
    fn a_line_that_is_no_key_is_named() {
        for line in ["x", "{}", r#"{"key":"k","type":"list","value":"v"}"#] {
            let text = format!("\n{line}\n");
            let mut source = JsonSource::new(text.as_bytes());
            assert_eq!(source.next().unwrap_err().to_string(), "line 2 is no key of a dump");
        }
    }
}
