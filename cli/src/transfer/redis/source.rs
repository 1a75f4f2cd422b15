//! A Redis server as a source.
//!
//! Keys by SCAN, database after database; the place to go on from is a cursor of SCAN, so after an
//! interruption a page of keys may be read twice. A cursor of Redis is a place in a table whose order
//! is drawn anew when the server starts: behind the cursor of an earlier life other keys would be
//! missed, so then everything is copied again. Collections are read in parts by HSCAN, SSCAN, ZSCAN
//! and LRANGE; a key that others change meanwhile may be copied in a state that it never had.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use super::info::{life, populated};
use super::words;
use crate::failure::Failure;
use crate::transfer::client::{Answer, Client};
use crate::transfer::{
    Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, Interrupt, RedisUrl, Source, State, now_ms,
};

/// Keys asked for at once.
const PAGE: usize = 500;

/// See the module's documentation.
pub(crate) struct RedisSource {
    client: Client,
    /// Still to come, the next one last.
    databases: Vec<u32>,
    database: u32,
    /// The cursor of the page after this one; `None` when the database is done.
    cursor: Option<Bytes>,
    keys: VecDeque<Known>,
    /// Values of the first strings among `keys`, asked for together.
    values: VecDeque<Option<Bytes>>,
    open: Option<Open>,
    expected: u64,
    skipped: u64,
    whole: Option<State>,
    /// What the server calls its present life; empty if it has no name for it.
    life: String,
}

/// A key of the page, with what the server said of it.
struct Known {
    key: Bytes,
    kind: Bytes,
    expire_ms: u64,
    /// Of a string.
    length: usize,
}

/// A collection being read.
struct Open {
    key: Bytes,
    kind: Kind,
    expire_ms: u64,
    cursor: Bytes,
    /// SCAN may show a member twice; a set of what was shown would not be bounded, and a second
    /// write of a member is harmless but in lists, which are read by position.
    position: u64,
    first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hash,
    List,
    Set,
    ZSet,
}

impl RedisSource {
    pub(crate) fn new(
        url: &RedisUrl,
        state: Option<&State>,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let mut client = Client::connect(url, interrupt)?;
        let life = life(&mut client)?;
        let state = state.filter(|state| state.life == life);
        let (mut databases, expected) = populated(&mut client, url.database)?;
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
            whole: None,
            life,
        };
        let state = state.filter(|state| source.databases.last() == Some(&state.database));
        if let Some(place) = state.and_then(|state| state.place.as_ref()) {
            source.next_database()?;
            source.cursor = Some(Bytes::copy_from_slice(place));
        }
        Ok(source)
    }

    /// What the server calls its present life: places of an earlier one are not gone on from.
    pub(crate) fn life(&self) -> &str {
        &self.life
    }

    /// Keys of types that lsmkv does not have.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    fn next_database(&mut self) -> Result<bool, Failure> {
        let Some(number) = self.databases.pop() else { return Ok(false) };
        self.client.ask_words(&["SELECT", &number.to_string()])?;
        self.database = number;
        self.cursor = Some(Bytes::from_static(b"0"));
        Ok(true)
    }

    /// Fills `keys`; `false` when there are no more.
    fn next_page(&mut self) -> Result<bool, Failure> {
        loop {
            let Some(cursor) = self.cursor.take() else {
                if !self.next_database()? {
                    return Ok(false);
                }
                continue;
            };
            let count = PAGE.to_string();
            let answer =
                self.client.ask(&words(&[b"SCAN", &cursor, b"COUNT", count.as_bytes()]))?;
            let (next, keys) = self.cursor_and_items(answer)?;
            let (database, place) = (self.database, Some(cursor.to_vec()));
            self.whole = Some(State { database, place, life: self.life.clone(), connection: None });
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

    fn cursor_and_items(&self, answer: Answer) -> Result<(Bytes, Vec<Bytes>), Failure> {
        let nonsense =
            || Failure::new(format!("{}: this is no answer to SCAN", self.client.peer()));
        let [cursor, items]: [Answer; 2] =
            answer.array().and_then(|parts| parts.try_into().ok()).ok_or_else(nonsense)?;
        let items = items.array().ok_or_else(nonsense)?.into_iter().filter_map(Answer::text);
        Ok((cursor.text().ok_or_else(nonsense)?, items.collect()))
    }

    /// Asks for type, expiry and length of all keys of a page at once.
    fn look_up(&mut self, keys: Vec<Bytes>) -> Result<VecDeque<Known>, Failure> {
        for key in &keys {
            for verb in ["TYPE", "PEXPIRETIME", "STRLEN"] {
                self.client.send(&words(&[verb.as_bytes(), key]))?;
            }
        }
        let mut known = VecDeque::with_capacity(keys.len());
        let mut old_server = false;
        for key in keys {
            let kind = self.client.receive()?.text().unwrap_or_default();
            let expire_ms = match self.client.receive()? {
                Answer::Int(at) => u64::try_from(at).unwrap_or(0),
                _ => {
                    old_server = true;
                    0
                }
            };
            let length = match self.client.receive()? {
                Answer::Int(length) => usize::try_from(length).unwrap_or(0),
                // It is no string.
                _ => 0,
            };
            known.push_back(Known { key, kind, expire_ms, length });
        }
        if old_server {
            for known in &mut known {
                known.expire_ms = self.expiry_of_old(&known.key)?;
            }
        }
        Ok(known)
    }

    /// Asks for the values of a string and of those that follow it, as many as fit in a chunk.
    fn fetch_values(&mut self, first: &Known) -> Result<(), Failure> {
        let mut bytes = first.length;
        self.client.send(&words(&[b"GET", &first.key]))?;
        let mut asked = 1;
        for next in self.keys.iter().filter(|next| next.kind == "string") {
            bytes = bytes.saturating_add(next.length);
            if bytes > CHUNK_BYTES {
                break;
            }
            self.client.send(&words(&[b"GET", &next.key]))?;
            asked += 1;
        }
        for _ in 0..asked {
            let value = self.client.receive()?.text();
            self.values.push_back(value);
        }
        Ok(())
    }

    /// The first part of a key; nothing if it is gone or of a foreign type.
    fn begin(&mut self, known: Known) -> Result<Option<Chunk>, Failure> {
        let kind = match &known.kind[..] {
            b"string" => return self.string(known),
            b"hash" => Kind::Hash,
            b"list" => Kind::List,
            b"set" => Kind::Set,
            b"zset" => Kind::ZSet,
            b"none" => return Ok(None),
            _ => {
                self.skipped += 1;
                return Ok(None);
            }
        };
        let (key, expire_ms, cursor) = (known.key, known.expire_ms, Bytes::from_static(b"0"));
        self.open = Some(Open { key, kind, expire_ms, cursor, position: 0, first: true });
        self.go_on()
    }

    fn string(&mut self, known: Known) -> Result<Option<Chunk>, Failure> {
        if self.values.is_empty() {
            self.fetch_values(&known)?;
        }
        // One that is gone, or of another type by now, is left out.
        let value = self.values.pop_front().flatten();
        Ok(value.map(|value| Chunk {
            database: self.database,
            key: known.key,
            expire_ms: known.expire_ms,
            first: true,
            last: true,
            body: Body::String(value),
        }))
    }

    /// Servers before 7.0 only tell the time that is left.
    fn expiry_of_old(&mut self, key: &[u8]) -> Result<u64, Failure> {
        Ok(match self.client.ask(&words(&[b"PTTL", key]))? {
            Answer::Int(ttl) => u64::try_from(ttl).map_or(0, |ttl| now_ms().saturating_add(ttl)),
            _ => 0,
        })
    }

    /// The next part of the open collection.
    fn go_on(&mut self) -> Result<Option<Chunk>, Failure> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        let (body, last) = match open.kind {
            Kind::List => self.elements(&mut open)?,
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

    fn elements(&mut self, open: &mut Open) -> Result<(Body, bool), Failure> {
        let from = open.position.to_string();
        open.position += CHUNK_MEMBERS as u64;
        let to = (open.position - 1).to_string();
        let answer =
            self.client.ask(&words(&[b"LRANGE", &open.key, from.as_bytes(), to.as_bytes()]))?;
        let elements: Vec<Bytes> =
            answer.array().unwrap_or_default().into_iter().filter_map(Answer::text).collect();
        let last = elements.len() < CHUNK_MEMBERS;
        Ok((Body::List(elements), last))
    }

    fn members(&mut self, open: &mut Open) -> Result<(Body, bool), Failure> {
        let verb: &[u8] = match open.kind {
            Kind::Hash => b"HSCAN",
            Kind::ZSet => b"ZSCAN",
            Kind::Set | Kind::List => b"SSCAN",
        };
        let count = CHUNK_MEMBERS.to_string();
        let command = words(&[verb, &open.key, &open.cursor, b"COUNT", count.as_bytes()]);
        let answer = self.client.ask(&command)?;
        let (next, items) = self.cursor_and_items(answer)?;
        let last = next == "0";
        open.cursor = next;
        let body = match open.kind {
            Kind::Hash => Body::Hash(pairs(items)),
            Kind::ZSet => Body::ZSet(
                pairs(items)
                    .into_iter()
                    .filter_map(|(member, score)| {
                        let score = std::str::from_utf8(&score).ok()?.parse().ok()?;
                        Some((member, score))
                    })
                    .collect(),
            ),
            Kind::Set | Kind::List => Body::Set(items),
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
                && let Some(chunk) = self.go_on()?
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

    fn position(&self) -> Option<State> {
        self.whole.clone()
    }
}
