//! Copies of keys between stores, Redis servers and files.
//!
//! A source yields [`Chunk`]s and a sink accepts them. A chunk is a key or a part of one; the parts
//! of a key are adjacent. A source bounds the parts of collections, and [`copy`] those of strings. So
//! a copy holds at most one part and, of a long string, its value; and every source works with every
//! sink.

mod client;
mod copy;
mod interruptible_io;
mod json;
mod progress;
mod redis;
mod resume;
mod store;
mod stream;

use bytes::Bytes;
use lsmkv::Type;
use lsmkv::types::Member;

use crate::failure::Failure;

pub(crate) use client::{RedisClient, text_of};
pub(crate) use copy::{Copied, copy};
pub(crate) use interruptible_io::InterruptibleReader;
pub(crate) use json::{JsonSink, JsonSource, encode as encode_json};
pub(crate) use progress::{Interrupt, Progress};
pub(crate) use redis::{RedisSink, RedisSource};
pub(crate) use resume::{ResumeFile, ResumePoint};
pub(crate) use store::{StoreSink, StoreSource};
pub(crate) use stream::{Loaded, RespSink, load_commands};

/// The maximum number of members in a chunk.
pub(crate) const CHUNK_MEMBERS: usize = 512;
/// The approximate maximum size of a chunk: the member that exceeds it is the last.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// A key or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    /// The number of the database.
    pub(crate) database: u32,
    pub(crate) key: Bytes,
    /// The expiry of the key in milliseconds since 1970; 0 = never.
    pub(crate) expire_ms: u64,
    /// Whether this is the first chunk of the key.
    pub(crate) first: bool,
    /// Whether this is the last chunk of the key.
    pub(crate) last: bool,
    pub(crate) body: Body,
}

/// The value of a key, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// The bytes of a string from an offset on. Before the next part, there are zeros.
    String {
        at: u64,
        bytes: Bytes,
    },
    Hash(Vec<(Bytes, Bytes)>),
    List(Vec<Bytes>),
    Set(Vec<Bytes>),
    ZSet(Vec<(Bytes, f64)>),
}

impl Body {
    /// An empty value of this type.
    pub(crate) fn empty(kind: Type) -> Self {
        match kind {
            Type::String => Self::whole_string(Bytes::new()),
            Type::Hash => Self::Hash(Vec::new()),
            Type::List => Self::List(Vec::new()),
            Type::Set => Self::Set(Vec::new()),
            Type::ZSet => Self::ZSet(Vec::new()),
        }
    }

    /// A string in one part.
    pub(crate) fn whole_string(bytes: Bytes) -> Self {
        Self::String { at: 0, bytes }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::String { .. } => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::ZSet(_) => "zset",
        }
    }

    /// Adds a member of the same type.
    pub(crate) fn push(&mut self, member: Member) {
        match (self, member) {
            (Self::Hash(pairs), Member::Field { field, value }) => pairs.push((field, value)),
            (Self::Set(members), Member::Member(member)) => members.push(member),
            (Self::ZSet(scored), Member::Scored { member, score }) => scored.push((member, score)),
            (Self::List(elements), Member::Element { element, .. }) => elements.push(element),
            // An iterator yields members of one type.
            _ => {}
        }
    }

    /// The number of members; a string counts with its first part.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::String { at, .. } => usize::from(*at == 0),
            Self::Hash(pairs) => pairs.len(),
            Self::List(members) | Self::Set(members) => members.len(),
            Self::ZSet(scored) => scored.len(),
        }
    }
}

/// A place that keys are read from.
pub(crate) trait Source {
    /// The next chunk; `None` at the end.
    fn next(&mut self) -> Result<Option<Chunk>, Failure>;
    /// The number of keys, if known.
    fn expected(&self) -> Option<u64> {
        None
    }
    /// The position from which a new source of the same kind can resume, after the last complete
    /// key.
    fn position(&self) -> Option<ResumePoint> {
        None
    }
}

/// A place that keys are written to.
pub(crate) trait Sink {
    fn put(&mut self, chunk: &Chunk) -> Result<(), Failure>;
    /// Waits until everything has arrived.
    fn flush(&mut self) -> Result<(), Failure>;
}

/// The arguments of a command, with its name.
pub(crate) type Command = Vec<Bytes>;

impl Chunk {
    /// The parts of a string that is longer than [`CHUNK_BYTES`]; other chunks are their only part.
    /// Parts of zeros are left out, as a string has zeros where nothing is written.
    pub(crate) fn parts(self) -> Vec<Self> {
        let Body::String { at, bytes } = &self.body else { return vec![self] };
        if bytes.len() <= CHUNK_BYTES {
            return vec![self];
        }
        let (mut at, mut rest, mut parts) = (*at, bytes.clone(), Vec::new());
        while !rest.is_empty() {
            let bytes = rest.split_to(rest.len().min(CHUNK_BYTES));
            let (first, last) = (parts.is_empty(), rest.is_empty());
            let end = at + bytes.len() as u64;
            let zeros = bytes.iter().all(|byte| *byte == 0);
            let (from, bytes) = match zeros {
                // The last zero makes the string as long as it is.
                true if last => (end - 1, Bytes::from_static(b"\0")),
                true => (at, Bytes::new()),
                false => (at, bytes),
            };
            at = end;
            if first || !bytes.is_empty() {
                parts.push(Self {
                    first: self.first && first,
                    last: self.last && last,
                    key: self.key.clone(),
                    body: Body::String { at: from, bytes },
                    ..self
                });
            }
        }
        parts
    }

    /// The commands that write this chunk. With `replace`, they first delete the key.
    pub(crate) fn commands(&self, replace: bool) -> Vec<Command> {
        let mut commands = Vec::new();
        let word = |text: &'static str| Bytes::from_static(text.as_bytes());
        let is_string = matches!(self.body, Body::String { .. });
        if self.first && replace && !is_string {
            commands.push(vec![word("DEL"), self.key.clone()]);
        }
        if self.body.len() > 0 || is_string {
            let mut write = vec![word(self.command_name()), self.key.clone()];
            self.append_members(&mut write);
            commands.push(write);
        }
        if self.last && self.expire_ms > 0 {
            let when = Bytes::from(self.expire_ms.to_string());
            match commands.last_mut() {
                Some(set) if matches!(self.body, Body::String { at: 0, .. }) => {
                    set.extend([word("PXAT"), when]);
                }
                _ => commands.push(vec![word("PEXPIREAT"), self.key.clone(), when]),
            }
        }
        commands
    }

    fn command_name(&self) -> &'static str {
        match self.body {
            Body::String { at: 0, .. } => "SET",
            Body::String { .. } => "SETRANGE",
            Body::Hash(_) => "HSET",
            Body::List(_) => "RPUSH",
            Body::Set(_) => "SADD",
            Body::ZSet(_) => "ZADD",
        }
    }

    fn append_members(&self, words: &mut Command) {
        match &self.body {
            Body::String { at, bytes } => {
                words.extend((*at > 0).then(|| Bytes::from(at.to_string())));
                words.push(bytes.clone());
            }
            Body::List(members) | Body::Set(members) => words.extend(members.iter().cloned()),
            Body::Hash(pairs) => {
                words
                    .extend(pairs.iter().flat_map(|(field, value)| [field.clone(), value.clone()]));
            }
            Body::ZSet(scored) => {
                let pair = |(member, score): &(Bytes, f64)| {
                    [Bytes::from(score_text(*score)), member.clone()]
                };
                words.extend(scored.iter().flat_map(pair));
            }
        }
    }
}

/// A score as text that parses to the same bits.
pub(crate) fn score_text(score: f64) -> String {
    if score.is_infinite() {
        return if score > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    score.to_string()
}

/// The current time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(body: Body, first: bool, last: bool, expire_ms: u64) -> Chunk {
        Chunk { database: 0, key: Bytes::from_static(b"k"), expire_ms, first, last, body }
    }

    fn texts(chunk: &Chunk, replace: bool) -> Vec<String> {
        let join = |command: Command| {
            let words: Vec<_> =
                command.iter().map(|word| word.escape_ascii().to_string()).collect();
            words.join(" ")
        };
        chunk.commands(replace).into_iter().map(join).collect()
    }

    #[test]
    fn a_string_is_one_command_with_its_expiry() {
        let body = Body::whole_string(Bytes::from_static(b"v"));
        assert_eq!(texts(&chunk(body.clone(), true, true, 0), true), ["SET k v"]);
        assert_eq!(texts(&chunk(body, true, true, 99), false), ["SET k v PXAT 99"]);
    }

    #[test]
    fn a_long_string_is_several_commands_and_its_zeros_are_none() {
        const PART: usize = CHUNK_BYTES;
        let parts = |bytes: &[u8]| {
            let body = Body::whole_string(Bytes::copy_from_slice(bytes));
            let parts = chunk(body, true, true, 99).parts();
            let commands = parts.into_iter().flat_map(|part| part.commands(true));
            let shown = |words: Command| -> Vec<String> {
                let short = |word: Bytes| match word.len() {
                    0..20 => word.escape_ascii().to_string(),
                    len => format!("{len} bytes"),
                };
                words.into_iter().map(short).collect()
            };
            commands.map(|words| shown(words).join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(parts(&vec![b'x'; PART]), [format!("SET k {PART} bytes PXAT 99")]);
        let [first, second] = [format!("SET k {PART} bytes"), format!("SETRANGE k {PART} y")];
        let longer = [&vec![b'x'; PART][..], b"y"].concat();
        assert_eq!(parts(&longer), [&first[..], &second, "PEXPIREAT k 99"]);
        let mut sparse = vec![0; 4 * PART];
        sparse[2 * PART] = 1;
        let [far, last] = [
            format!("SETRANGE k {} {PART} bytes", 2 * PART),
            format!("SETRANGE k {} \\x00", 4 * PART - 1),
        ];
        assert_eq!(parts(&sparse), ["SET k ", &far, &last, "PEXPIREAT k 99"]);
    }

    #[test]
    fn only_the_first_part_of_a_collection_deletes_and_only_the_last_sets_the_expiry() {
        let body = Body::List(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]);
        assert_eq!(texts(&chunk(body.clone(), true, false, 5), true), ["DEL k", "RPUSH k a b"]);
        assert_eq!(texts(&chunk(body.clone(), false, false, 5), true), ["RPUSH k a b"]);
        assert_eq!(
            texts(&chunk(body.clone(), false, true, 5), true),
            ["RPUSH k a b", "PEXPIREAT k 5"]
        );
        assert_eq!(texts(&chunk(body, true, true, 0), false), ["RPUSH k a b"]);
        assert_eq!(texts(&chunk(Body::empty(Type::Hash), false, true, 7), true), ["PEXPIREAT k 7"]);
    }

    #[test]
    fn scores_read_back_as_the_same_bits() {
        let scores = [0.0, -0.0, 0.1, 1e300, -5e-324, f64::MAX, f64::INFINITY, 3.0, 1.0 / 3.0];
        for score in scores {
            let text = score_text(score);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), score.to_bits(), "{text}");
        }
    }
}
