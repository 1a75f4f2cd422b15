//! A key of a dump: its type, and its members in whatever form they are stored.

use std::collections::VecDeque;
use std::io::Read;

use bytes::Bytes;
use lsmkv::Type;

use super::blob::{Form, Next, Packed};
use super::field_times::{FieldTime, FieldTimes};
use super::source::RdbSource;
use crate::failure::Failure;
use crate::transfer::{Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, score_text};

/// How the rest of a collection is stored.
#[derive(Clone, Copy)]
enum Rest {
    /// So many members, one by one.
    Members(u64, Score),
    /// So many packed nodes; whether each says how it is packed.
    Nodes(u64, bool),
    /// So many fields, each with the time it expires.
    TimedFields(u64, FieldTimes),
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
pub(super) struct Open {
    key: Bytes,
    kind: Type,
    expire_ms: u64,
    first: bool,
    /// The packed collection, or the node of one, that is being read.
    packed: Option<Packed>,
    /// Whether its fields are followed by the time they expire.
    timed: bool,
    rest: Rest,
    /// Words read, but not given yet: a member each, or a pair.
    ready: VecDeque<Bytes>,
}

#[cfg(test)]
impl Open {
    /// Words that are read and not given yet.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }
}

impl<R: Read> RdbSource<R> {
    /// The first chunk of a key; nothing if it is skipped.
    pub(super) fn begin(
        &mut self,
        kind: u8,
        key: Bytes,
        expire_ms: u64,
    ) -> Result<Option<Chunk>, Failure> {
        let timed = matches!(kind, 23 | 25);
        let (kind, rest, packed) = match kind {
            0 => {
                let body = Body::String(self.input.string()?);
                let (database, first, last) = (self.database, true, true);
                return Ok(Some(Chunk { database, key, expire_ms, first, last, body }));
            }
            1 => (Type::List, self.members(Score::None)?, None),
            2 => (Type::Set, self.members(Score::None)?, None),
            3 => (Type::ZSet, self.members(Score::Text)?, None),
            4 => (Type::Hash, self.members(Score::None)?, None),
            5 => (Type::ZSet, self.members(Score::Binary)?, None),
            9 => (Type::Hash, Rest::Nothing, self.packed(Form::Zipmap)?),
            10 => (Type::List, Rest::Nothing, self.packed(Form::Ziplist)?),
            11 => (Type::Set, Rest::Nothing, self.packed(Form::Intset)?),
            12 => (Type::ZSet, Rest::Nothing, self.packed(Form::Ziplist)?),
            13 => (Type::Hash, Rest::Nothing, self.packed(Form::Ziplist)?),
            14 => (Type::List, Rest::Nodes(self.input.length()?, false), None),
            16 => (Type::Hash, Rest::Nothing, self.packed(Form::Listpack)?),
            17 => (Type::ZSet, Rest::Nothing, self.packed(Form::Listpack)?),
            18 => (Type::List, Rest::Nodes(self.input.length()?, true), None),
            20 => (Type::Set, Rest::Nothing, self.packed(Form::Listpack)?),
            22 => (Type::Hash, self.timed_fields(FieldTimes::Absolute)?, None),
            23 => (Type::Hash, Rest::Nothing, self.packed(Form::Listpack)?),
            24 => {
                let times = FieldTimes::After(self.input.u64_le()?);
                (Type::Hash, self.timed_fields(times)?, None)
            }
            25 => {
                // The earliest time, which the pack tells as well.
                self.input.u64_le()?;
                (Type::Hash, Rest::Nothing, self.packed(Form::Listpack)?)
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
        let (first, ready) = (true, VecDeque::new());
        self.open = Some(Open { key, kind, expire_ms, first, packed, timed, rest, ready });
        self.go_on()
    }

    fn members(&mut self, score: Score) -> Result<Rest, Failure> {
        Ok(Rest::Members(self.input.length()?, score))
    }

    fn packed(&mut self, form: Form) -> Result<Option<Packed>, Failure> {
        let packed = Packed::new(self.input.string()?, form);
        if packed.is_none() { Err(self.wrong_pack()) } else { Ok(packed) }
    }

    fn wrong_pack(&self) -> Failure {
        self.input.failure("a packed collection is not valid")
    }

    /// Reads another element of a packed collection; `false` when there are no more.
    fn unpack_more(&mut self, open: &mut Open) -> Result<bool, Failure> {
        let Some(packed) = &mut open.packed else { return Ok(false) };
        let word = match packed.next() {
            Next::Element(word) => word,
            Next::Wrong => return Err(self.wrong_pack()),
            Next::End => {
                open.packed = None;
                return Ok(false);
            }
        };
        if !open.timed {
            open.ready.push_back(word);
            return Ok(true);
        }
        let (Next::Element(value), Next::Element(when)) = (packed.next(), packed.next()) else {
            return Err(self.wrong_pack());
        };
        let when = std::str::from_utf8(&when).ok().and_then(|text| text.parse().ok());
        let time = when.and_then(|when| FieldTimes::Absolute.judge(when, self.now_ms));
        if self.keeps_field(time)? {
            open.ready.extend([word, value]);
        }
        Ok(true)
    }

    fn timed_fields(&mut self, times: FieldTimes) -> Result<Rest, Failure> {
        Ok(Rest::TimedFields(self.input.length()?, times))
    }

    /// Whether a field is imported. Fields have no expiry here, which is counted; one whose time is
    /// over stays away.
    fn keeps_field(&mut self, time: Option<FieldTime>) -> Result<bool, Failure> {
        match time {
            None => return Err(self.input.failure("a field's expiry is no time")),
            Some(FieldTime::Never) => {}
            Some(FieldTime::Later) => self.skip("expiries of fields, which are kept without"),
            Some(FieldTime::Over) => self.skip("fields that have expired"),
        }
        Ok(time != Some(FieldTime::Over))
    }

    /// The next chunk of the open key.
    pub(super) fn go_on(&mut self) -> Result<Option<Chunk>, Failure> {
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
        if open.first && last && body.len() == 0 {
            // All its fields have expired, or it never had any.
            self.skip("keys without members");
            return Ok(None);
        }
        let first = std::mem::replace(&mut open.first, false);
        let (database, key, expire_ms) = (self.database, open.key.clone(), open.expire_ms);
        if !last {
            self.open = Some(open);
        }
        Ok(Some(Chunk { database, key, expire_ms, first, last, body }))
    }

    /// Reads another member or node; `false` when there are no more.
    fn read_more(&mut self, open: &mut Open) -> Result<bool, Failure> {
        if self.unpack_more(open)? {
            return Ok(true);
        }
        match open.rest {
            Rest::Nothing | Rest::Members(0, _) | Rest::Nodes(0, _) | Rest::TimedFields(0, _) => {
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
                let container = if tagged { Some(self.input.length()?) } else { None };
                match container {
                    None => open.packed = self.packed(Form::Ziplist)?,
                    Some(1) => open.ready.push_back(self.input.string()?),
                    Some(2) => open.packed = self.packed(Form::Listpack)?,
                    Some(_) => return Err(self.input.failure("a list's node has an unknown form")),
                }
            }
            Rest::TimedFields(left, times) => {
                open.rest = Rest::TimedFields(left - 1, times);
                let time = times.judge(self.input.length()?, self.now_ms);
                let pair = [self.input.string()?, self.input.string()?];
                if self.keeps_field(time)? {
                    open.ready.extend(pair);
                }
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
}
