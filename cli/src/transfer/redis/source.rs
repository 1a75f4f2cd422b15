//! A Redis server as a source.
//!
//! The source reads keys by SCAN, one database after the other. It resumes at a SCAN cursor, so
//! after an interruption it may read a page of keys twice. A cursor is a position in a hash table
//! whose order changes when the server restarts; resuming at an old cursor would miss keys, so a
//! copy then starts again. Collections are read in parts by HSCAN, SSCAN, ZSCAN and LRANGE. A key
//! that others change at the same time may be copied in a state that it never had.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use lsmkv::{Address, Options, Reply};

use super::info::{populated, run_id};
use super::words;
use crate::failure::Failure;
use crate::transfer::client::{RedisClient, elements_of, text_of};
use crate::transfer::{
    Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, Interrupt, ResumePoint, Source, now_ms,
};

/// The number of keys per SCAN.
const PAGE_KEYS: usize = 500;

/// Reads the keys of a Redis server.
pub(crate) struct RedisSource {
    client: RedisClient,
    /// The remaining databases, the next one last.
    databases: Vec<u32>,
    database: u32,
    /// The cursor of the next page; `None` when the database is finished.
    cursor: Option<Bytes>,
    keys: VecDeque<KeyInfo>,
    /// The values of the first strings among `keys`, fetched together.
    values: VecDeque<Option<Bytes>>,
    open: Option<OpenCollection>,
    expected: u64,
    skipped: u64,
    resume_point: Option<ResumePoint>,
    /// The server's run id; empty if it has none.
    run_id: String,
}

/// A key of the page, with its type and expiry.
struct KeyInfo {
    key: Bytes,
    kind: Bytes,
    expire_ms: u64,
    /// The length of a string.
    length: usize,
}

/// A collection that is partly read.
struct OpenCollection {
    key: Bytes,
    kind: CollectionKind,
    expire_ms: u64,
    cursor: Bytes,
    /// The next index of a list. HSCAN, SSCAN and ZSCAN may return a member twice: a set of those
    /// seen would not be bounded, and writing a member twice is harmless.
    position: u64,
    first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CollectionKind {
    Hash,
    List,
    Set,
    ZSet,
}

impl RedisSource {
    pub(crate) fn new(
        address: &Address,
        options: &Options,
        state: Option<&ResumePoint>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let mut client = RedisClient::connect(address, options, interrupt)?;
        let run_id = run_id(&mut client)?;
        let state = state.filter(|state| state.run_id == run_id);
        let (mut databases, expected) = populated(&mut client, address.database)?;
        databases.sort_unstable_by(|a, b| b.cmp(a));
        databases.retain(|number| state.is_none_or(|state| *number >= state.database));
        let mut source = Self {
            client,
            databases,
            database: 0,
            cursor: None,
            keys: VecDeque::new(),
            values: VecDeque::new(),
            open: None,
            expected,
            skipped: 0,
            resume_point: None,
            run_id,
        };
        let state = state.filter(|state| source.databases.last() == Some(&state.database));
        if let Some(position) = state.and_then(|state| state.position.as_ref()) {
            source.next_database()?;
            source.cursor = Some(Bytes::copy_from_slice(position));
        }
        Ok(source)
    }

    /// The server's run id. Positions of another run are not valid.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The number of keys skipped because lsmkv does not have their type.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    fn next_database(&mut self) -> Result<bool, Failure> {
        let Some(number) = self.databases.pop() else { return Ok(false) };
        if !self.client.is_cluster() {
            self.client.call_words(&["SELECT", &number.to_string()])?;
        }
        self.database = number;
        self.cursor = Some(Bytes::from_static(b"0"));
        Ok(true)
    }

    /// Fills `keys` with the next page; `false` when there are no more.
    fn next_page(&mut self) -> Result<bool, Failure> {
        loop {
            let Some(cursor) = self.cursor.take() else {
                if !self.next_database()? {
                    return Ok(false);
                }
                continue;
            };
            let count = PAGE_KEYS.to_string();
            let answer =
                self.client.call(words(&[b"SCAN", &cursor, b"COUNT", count.as_bytes()]))?;
            let (next, keys) = self.cursor_and_items(answer)?;
            let (database, position) = (self.database, Some(cursor.to_vec()));
            // A cursor of a cluster says little once a slot has moved.
            self.resume_point = (!self.client.is_cluster()).then(|| ResumePoint {
                database,
                position,
                run_id: self.run_id.clone(),
                connection: None,
            });
            self.cursor = (next != "0").then_some(next);
            // A page may name a key twice.
            let mut seen = HashSet::new();
            let keys = keys.into_iter().filter(|key| seen.insert(key.clone())).collect();
            self.keys = self.look_up(keys)?;
            if !self.keys.is_empty() {
                return Ok(true);
            }
        }
    }

    fn cursor_and_items(&self, answer: Reply) -> Result<(Bytes, Vec<Bytes>), Failure> {
        let nonsense =
            || Failure::new(format!("{}: this is no answer to SCAN", self.client.peer()));
        let [cursor, items]: [Reply; 2] =
            elements_of(answer).and_then(|parts| parts.try_into().ok()).ok_or_else(nonsense)?;
        let items = elements_of(items).ok_or_else(nonsense)?.into_iter().filter_map(text_of);
        Ok((text_of(cursor).ok_or_else(nonsense)?, items.collect()))
    }

    /// Fetches type, expiry and length of all keys of a page in one pipeline.
    fn look_up(&mut self, keys: Vec<Bytes>) -> Result<VecDeque<KeyInfo>, Failure> {
        for key in &keys {
            for verb in ["TYPE", "PEXPIRETIME", "STRLEN"] {
                self.client.send(words(&[verb.as_bytes(), key]))?;
            }
        }
        let mut known = VecDeque::with_capacity(keys.len());
        let mut old_server = false;
        for key in keys {
            let kind = text_of(self.client.receive()?).unwrap_or_default();
            let expire_ms = match self.client.receive()? {
                Reply::Int(at) => u64::try_from(at).unwrap_or(0),
                _ => {
                    old_server = true;
                    0
                }
            };
            let length = match self.client.receive()? {
                Reply::Int(length) => usize::try_from(length).unwrap_or(0),
                // The key is not a string.
                _ => 0,
            };
            known.push_back(KeyInfo { key, kind, expire_ms, length });
        }
        if old_server {
            for known in &mut known {
                known.expire_ms = self.expiry_from_pttl(&known.key)?;
            }
        }
        Ok(known)
    }

    /// Fetches the values of a string and of the strings after it, as many as fit in a chunk.
    fn fetch_values(&mut self, first: &KeyInfo) -> Result<(), Failure> {
        let mut bytes = first.length;
        self.client.send(words(&[b"GET", &first.key]))?;
        let mut asked = 1;
        for next in self.keys.iter().filter(|next| next.kind == "string") {
            bytes = bytes.saturating_add(next.length);
            if bytes > CHUNK_BYTES {
                break;
            }
            self.client.send(words(&[b"GET", &next.key]))?;
            asked += 1;
        }
        for _ in 0..asked {
            let value = text_of(self.client.receive()?);
            self.values.push_back(value);
        }
        Ok(())
    }

    /// The first chunk of a key; `None` if the key is gone or has an unsupported type.
    fn begin(&mut self, known: KeyInfo) -> Result<Option<Chunk>, Failure> {
        let kind = match &known.kind[..] {
            b"string" => return self.string(known),
            b"hash" => CollectionKind::Hash,
            b"list" => CollectionKind::List,
            b"set" => CollectionKind::Set,
            b"zset" => CollectionKind::ZSet,
            b"none" => return Ok(None),
            _ => {
                self.skipped += 1;
                return Ok(None);
            }
        };
        let (key, expire_ms, cursor) = (known.key, known.expire_ms, Bytes::from_static(b"0"));
        self.open = Some(OpenCollection { key, kind, expire_ms, cursor, position: 0, first: true });
        self.next_part()
    }

    fn string(&mut self, known: KeyInfo) -> Result<Option<Chunk>, Failure> {
        if self.values.is_empty() {
            self.fetch_values(&known)?;
        }
        // Skips a key that is gone or has another type by now.
        let value = self.values.pop_front().flatten();
        Ok(value.map(|value| Chunk {
            database: self.database,
            key: known.key,
            expire_ms: known.expire_ms,
            first: true,
            last: true,
            body: Body::whole_string(value),
        }))
    }

    /// The expiry on a server before 7.0, which reports only the remaining time.
    fn expiry_from_pttl(&mut self, key: &[u8]) -> Result<u64, Failure> {
        Ok(match self.client.call(words(&[b"PTTL", key]))? {
            Reply::Int(ttl) => u64::try_from(ttl).map_or(0, |ttl| now_ms().saturating_add(ttl)),
            _ => 0,
        })
    }

    /// The next chunk of the open collection.
    fn next_part(&mut self) -> Result<Option<Chunk>, Failure> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        let (body, last) = match open.kind {
            CollectionKind::List => self.elements(&mut open)?,
            _ => self.members(&mut open)?,
        };
        if body.len() == 0 && open.first && last {
            return Ok(None);
        }
        let chunk = Chunk {
            database: self.database,
            key: open.key.clone(),
            expire_ms: open.expire_ms,
            first: std::mem::replace(&mut open.first, false),
            last,
            body,
        };
        if !last {
            self.open = Some(open);
        }
        Ok(Some(chunk))
    }

    fn elements(&mut self, open: &mut OpenCollection) -> Result<(Body, bool), Failure> {
        let from = open.position.to_string();
        open.position += CHUNK_MEMBERS as u64;
        let to = (open.position - 1).to_string();
        let answer =
            self.client.call(words(&[b"LRANGE", &open.key, from.as_bytes(), to.as_bytes()]))?;
        let elements: Vec<Bytes> =
            elements_of(answer).unwrap_or_default().into_iter().filter_map(text_of).collect();
        let last = elements.len() < CHUNK_MEMBERS;
        Ok((Body::List(elements), last))
    }

    fn members(&mut self, open: &mut OpenCollection) -> Result<(Body, bool), Failure> {
        let verb: &[u8] = match open.kind {
            CollectionKind::Hash => b"HSCAN",
            CollectionKind::ZSet => b"ZSCAN",
            CollectionKind::Set | CollectionKind::List => b"SSCAN",
        };
        let count = CHUNK_MEMBERS.to_string();
        let command = words(&[verb, &open.key, &open.cursor, b"COUNT", count.as_bytes()]);
        let answer = self.client.call(command)?;
        let (next, items) = self.cursor_and_items(answer)?;
        let last = next == "0";
        open.cursor = next;
        let body = match open.kind {
            CollectionKind::Hash => Body::Hash(pairs(items)),
            CollectionKind::ZSet => Body::ZSet(
                pairs(items)
                    .into_iter()
                    .filter_map(|(member, score)| {
                        let score = std::str::from_utf8(&score).ok()?.parse().ok()?;
                        Some((member, score))
                    })
                    .collect(),
            ),
            CollectionKind::Set | CollectionKind::List => Body::Set(items),
        };
        Ok((body, last))
    }
}

fn pairs(items: Vec<Bytes>) -> Vec<(Bytes, Bytes)> {
    let mut items = items.into_iter();
    std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect()
}

impl Source for RedisSource {
    fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        loop {
            if self.open.is_some()
                && let Some(chunk) = self.next_part()?
            {
                return Ok(Some(chunk));
            }
            if self.keys.is_empty() && !self.next_page()? {
                return Ok(None);
            }
            if let Some(known) = self.keys.pop_front()
                && let Some(chunk) = self.begin(known)?
            {
                return Ok(Some(chunk));
            }
        }
    }

    fn expected(&self) -> Option<u64> {
        Some(self.expected)
    }

    fn position(&self) -> Option<ResumePoint> {
        self.resume_point.clone()
    }
}
