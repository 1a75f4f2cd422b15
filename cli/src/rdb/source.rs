//! The keys of a dump, one chunk after the other.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

use bytes::Bytes;
use lsmkv::Type;

use super::blob;
use super::input::Input;
use crate::failure::Failure;
use crate::transfer::{Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, Source, score_text};

/// The newest version whose forms are known.
const NEWEST: u32 = 12;

/// How the rest of a collection is stored.
#[derive(Clone, Copy)]
enum Rest {
    /// So many members, one by one.
    Members(u64, Score),
    /// So many packed nodes; whether each says how it is packed.
    Nodes(u64, bool),
    /// Fields with the time they expire, relative to the earliest; 0 = never.
    TimedFields(u64),
    Nothing,
}

/// How a member's score is stored.
#[derive(Clone, Copy)]
enum Score {
    None,
    Text,
    Binary,
}

/// A key of which a part may have been given.
struct Open {
    key: Bytes,
    kind: Type,
    expire_ms: u64,
    first: bool,
    rest: Rest,
    /// Words read, but not given yet: a member each, or a pair.
    ready: VecDeque<Bytes>,
}

/// See the module's documentation.
pub(crate) struct RdbSource<R> {
    input: Input<R>,
    version: u32,
    database: u32,
    open: Option<Open>,
    done: bool,
    /// Number of keys skipped, by what they are.
    skipped: BTreeMap<&'static str, u64>,
    expected: u64,
}

impl<R: Read> RdbSource<R> {
    /// Reads the head of a dump.
    pub(crate) fn new(input: R) -> Result<Self, Failure> {
        let mut input = Input::new(input);
        let no_dump = || Failure::new("this is no dump of Redis");
        let head: [u8; 9] = input.array().map_err(|_| no_dump())?;
        let version = head.strip_prefix(b"REDIS").and_then(|it| std::str::from_utf8(it).ok());
        let version = version.and_then(|text| text.parse().ok()).ok_or_else(no_dump)?;
        if version > NEWEST {
            return Err(Failure::new(format!(
                "the dump has version {version}; versions up to {NEWEST} can be read"
            )));
        }
        let skipped = BTreeMap::new();
        Ok(Self { input, version, database: 0, open: None, done: false, skipped, expected: 0 })
    }

    /// What was left out, and how often.
    pub(crate) fn skipped(&self) -> &BTreeMap<&'static str, u64> {
        &self.skipped
    }

    fn skip(&mut self, what: &'static str) {
        *self.skipped.entry(what).or_default() += 1;
    }

    /// Reads up to the next key that can be imported.
    fn next_key(&mut self) -> Result<Option<Chunk>, Failure> {
        let mut expire_ms = 0;
        loop {
            match self.input.byte()? {
                0xff => {
                    self.finish()?;
                    return Ok(None);
                }
                0xfe => {
                    let number = self.input.length()?;
                    let number = u32::try_from(number);
                    self.database =
                        number.map_err(|_| self.input.failure("a database's number"))?;
                }
                0xfd => expire_ms = u64::from(self.input.u32_le()?) * 1000,
                0xfc => expire_ms = self.input.u64_le()?,
                0xfb => {
                    self.expected += self.input.length()?;
                    self.input.length()?;
                }
                0xfa => {
                    self.input.string()?;
                    self.input.string()?;
                }
                0xf9 => _ = self.input.byte()?,
                0xf8 => _ = self.input.length()?,
                0xf7 => {
                    self.input.skip_lengths(3)?;
                    self.input.skip_module()?;
                    self.skip("modules' own data");
                }
                0xf5 => {
                    self.input.string()?;
                    self.skip("functions");
                }
                0xf4 => self.input.skip_lengths(3)?,
                kind => {
                    let key = self.input.string()?;
                    if let Some(chunk) = self.begin(kind, key, std::mem::take(&mut expire_ms))? {
                        return Ok(Some(chunk));
                    }
                }
            }
        }
    }

    /// The first chunk of a key; nothing if it is skipped.
    fn begin(&mut self, kind: u8, key: Bytes, expire_ms: u64) -> Result<Option<Chunk>, Failure> {
        let (kind, rest, ready) = match kind {
            0 => {
                let body = Body::String(self.input.string()?);
                let (database, first, last) = (self.database, true, true);
                return Ok(Some(Chunk { database, key, expire_ms, first, last, body }));
            }
            1 => (Type::List, self.members(Score::None)?, vec![]),
            2 => (Type::Set, self.members(Score::None)?, vec![]),
            3 => (Type::ZSet, self.members(Score::Text)?, vec![]),
            4 => (Type::Hash, self.members(Score::None)?, vec![]),
            5 => (Type::ZSet, self.members(Score::Binary)?, vec![]),
            9 => (Type::Hash, Rest::Nothing, self.packed(blob::zipmap)?),
            10 => (Type::List, Rest::Nothing, self.packed(blob::ziplist)?),
            11 => (Type::Set, Rest::Nothing, self.packed(blob::intset)?),
            12 => (Type::ZSet, Rest::Nothing, self.packed(blob::ziplist)?),
            13 => (Type::Hash, Rest::Nothing, self.packed(blob::ziplist)?),
            14 => (Type::List, Rest::Nodes(self.input.length()?, false), vec![]),
            16 => (Type::Hash, Rest::Nothing, self.packed(blob::listpack)?),
            17 => (Type::ZSet, Rest::Nothing, self.packed(blob::listpack)?),
            18 => (Type::List, Rest::Nodes(self.input.length()?, true), vec![]),
            20 => (Type::Set, Rest::Nothing, self.packed(blob::listpack)?),
            24 => {
                self.input.u64_le()?;
                (Type::Hash, Rest::TimedFields(self.input.length()?), vec![])
            }
            25 => {
                self.input.u64_le()?;
                (Type::Hash, Rest::Nothing, self.timed_listpack()?)
            }
            15 | 19 | 21 => {
                self.input.skip_stream(kind)?;
                self.skip("streams");
                return Ok(None);
            }
            7 => {
                self.input.length()?;
                self.input.skip_module()?;
                self.skip("keys of modules");
                return Ok(None);
            }
            other => return Err(self.input.failure(&format!("type {other} is not known"))),
        };
        let ready = VecDeque::from(ready);
        self.open = Some(Open { key, kind, expire_ms, first: true, rest, ready });
        self.go_on()
    }

    fn members(&mut self, score: Score) -> Result<Rest, Failure> {
        Ok(Rest::Members(self.input.length()?, score))
    }

    fn packed(&mut self, read: fn(&[u8]) -> Option<Vec<Bytes>>) -> Result<Vec<Bytes>, Failure> {
        let blob = self.input.string()?;
        read(&blob).ok_or_else(|| self.input.failure("a packed collection is not valid"))
    }

    fn timed_listpack(&mut self) -> Result<Vec<Bytes>, Failure> {
        let words = self.packed(blob::listpack)?;
        let mut pairs = Vec::with_capacity(words.len());
        for triple in words.chunks(3) {
            let [field, value, when] = triple else {
                return Err(self.input.failure("a packed collection is not valid"));
            };
            if when != "0" {
                self.skip("expiries of fields");
            }
            pairs.extend([field.clone(), value.clone()]);
        }
        Ok(pairs)
    }

    /// The next chunk of the open key.
    fn go_on(&mut self) -> Result<Option<Chunk>, Failure> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        let words = if matches!(open.kind, Type::Hash | Type::ZSet) { 2 } else { 1 };
        let mut bytes = 0;
        let mut taken = Vec::new();
        while taken.len() < CHUNK_MEMBERS * words && bytes < CHUNK_BYTES {
            while open.ready.len() < words && self.read_more(&mut open)? {}
            if open.ready.is_empty() {
                break;
            }
            for _ in 0..words {
                let word = open.ready.pop_front();
                let word = word.ok_or_else(|| self.input.failure("a member lacks its value"))?;
                bytes += word.len();
                taken.push(word);
            }
        }
        while open.ready.is_empty() && self.read_more(&mut open)? {}
        let last = open.ready.is_empty();
        let body = self.body(open.kind, taken)?;
        let first = std::mem::replace(&mut open.first, false);
        let (database, key, expire_ms) = (self.database, open.key.clone(), open.expire_ms);
        if !last {
            self.open = Some(open);
        }
        Ok(Some(Chunk { database, key, expire_ms, first, last, body }))
    }

    /// Reads another member or node; `false` when there are no more.
    fn read_more(&mut self, open: &mut Open) -> Result<bool, Failure> {
        match open.rest {
            Rest::Nothing | Rest::Members(0, _) | Rest::Nodes(0, _) | Rest::TimedFields(0) => {
                return Ok(false);
            }
            Rest::Members(left, score) => {
                open.rest = Rest::Members(left - 1, score);
                open.ready.push_back(self.input.string()?);
                match (open.kind, score) {
                    (Type::Hash, _) => open.ready.push_back(self.input.string()?),
                    (_, Score::Text) => {
                        open.ready.push_back(score_text(self.input.text_score()?).into());
                    }
                    (_, Score::Binary) => {
                        open.ready.push_back(score_text(self.input.binary_score()?).into());
                    }
                    (_, Score::None) => {}
                }
            }
            Rest::Nodes(left, tagged) => {
                open.rest = Rest::Nodes(left - 1, tagged);
                let container = if tagged { self.input.length()? } else { 0 };
                match container {
                    0 => open.ready.extend(self.packed(blob::ziplist)?),
                    1 => open.ready.push_back(self.input.string()?),
                    2 => open.ready.extend(self.packed(blob::listpack)?),
                    _ => return Err(self.input.failure("a list's node has an unknown form")),
                }
            }
            Rest::TimedFields(left) => {
                open.rest = Rest::TimedFields(left - 1);
                if self.input.length()? != 0 {
                    self.skip("expiries of fields");
                }
                open.ready.extend([self.input.string()?, self.input.string()?]);
            }
        }
        Ok(true)
    }

    fn body(&self, kind: Type, words: Vec<Bytes>) -> Result<Body, Failure> {
        let mut body = Body::empty(kind);
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match &mut body {
                Body::String(value) => *value = word,
                Body::List(members) | Body::Set(members) => members.push(word),
                Body::Hash(pairs) => pairs.push((word, words.next().unwrap_or_default())),
                Body::ZSet(scored) => {
                    let score = words.next().unwrap_or_default();
                    let score = std::str::from_utf8(&score).ok().and_then(|it| it.parse().ok());
                    let score = score.filter(|score: &f64| !score.is_nan());
                    let score = score.ok_or_else(|| self.input.failure("a score is no number"))?;
                    scored.push((word, score));
                }
            }
        }
        Ok(body)
    }

    /// The end: compares the checksum, if there is one.
    fn finish(&mut self) -> Result<(), Failure> {
        self.done = true;
        if self.version < 5 {
            return Ok(());
        }
        let found = self.input.checksum();
        let expected = self.input.u64_le()?;
        if expected != 0 && expected != found {
            return Err(Failure::new(format!(
                "the dump's checksum is {expected:016x}, its bytes give {found:016x}: it is damaged"
            )));
        }
        Ok(())
    }
}

impl<R: Read> Source for RdbSource<R> {
    fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        if self.done {
            return Ok(None);
        }
        if self.open.is_some() {
            return self.go_on();
        }
        self.next_key()
    }

    fn expected(&self) -> Option<u64> {
        // The number of keys stands behind the first selection of a database.
        (self.expected > 0).then_some(self.expected)
    }
}
