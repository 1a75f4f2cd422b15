//! A key of a dump: its type, and its members in any encoding.

use std::collections::VecDeque;
use std::io::Read;

use bytes::Bytes;
use lsmkv::Type;

use super::field_expiry::{FieldExpiry, FieldExpiryEncoding};
use super::packed::{NextElement, PackedCollection, PackedEncoding};
use super::source::RdbSource;
use crate::failure::Failure;
use crate::transfer::{Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, score_text};

/// The encoding of the rest of a collection.
#[derive(Clone, Copy)]
enum RemainingMembers {
    /// A number of members, one by one.
    Members(u64, ScoreEncoding),
    /// A number of packed nodes, and whether each names its encoding.
    Nodes(u64, bool),
    /// A number of fields, each with its expiry.
    TimedFields(u64, FieldExpiryEncoding),
    Nothing,
}

/// The encoding of a member's score.
#[derive(Clone, Copy)]
enum ScoreEncoding {
    None,
    Text,
    Binary,
}

/// A key that may be partly read.
pub(super) struct OpenKey {
    key: Bytes,
    kind: Type,
    expire_ms: u64,
    first: bool,
    /// The packed collection or node being read.
    packed: Option<PackedCollection>,
    /// Whether each of its fields is followed by an expiry.
    timed: bool,
    rest: RemainingMembers,
    /// Words read but not yet returned: one per member, or a pair.
    ready: VecDeque<Bytes>,
}

#[cfg(test)]
impl OpenKey {
    /// The number of words read but not yet returned.
    pub(super) fn waiting(&self) -> usize {
        self.ready.len()
    }
}

impl<R: Read> RdbSource<R> {
    /// The first chunk of a key; `None` if the key is skipped.
    pub(super) fn begin(
        &mut self,
        kind: u8,
        key: Bytes,
        expire_ms: u64,
    ) -> Result<Option<Chunk>, Failure> {
        let timed = matches!(kind, 23 | 25);
        let (kind, rest, packed) = match kind {
            0 => {
                let body = Body::whole_string(self.input.string()?);
                let (database, first, last) = (self.database, true, true);
                return Ok(Some(Chunk { database, key, expire_ms, first, last, body }));
            }
            1 => (Type::List, self.members(ScoreEncoding::None)?, None),
            2 => (Type::Set, self.members(ScoreEncoding::None)?, None),
            3 => (Type::ZSet, self.members(ScoreEncoding::Text)?, None),
            4 => (Type::Hash, self.members(ScoreEncoding::None)?, None),
            5 => (Type::ZSet, self.members(ScoreEncoding::Binary)?, None),
            9 => (Type::Hash, RemainingMembers::Nothing, self.packed(PackedEncoding::Zipmap)?),
            10 => (Type::List, RemainingMembers::Nothing, self.packed(PackedEncoding::Ziplist)?),
            11 => (Type::Set, RemainingMembers::Nothing, self.packed(PackedEncoding::Intset)?),
            12 => (Type::ZSet, RemainingMembers::Nothing, self.packed(PackedEncoding::Ziplist)?),
            13 => (Type::Hash, RemainingMembers::Nothing, self.packed(PackedEncoding::Ziplist)?),
            14 => (Type::List, RemainingMembers::Nodes(self.input.length()?, false), None),
            16 => (Type::Hash, RemainingMembers::Nothing, self.packed(PackedEncoding::Listpack)?),
            17 => (Type::ZSet, RemainingMembers::Nothing, self.packed(PackedEncoding::Listpack)?),
            18 => (Type::List, RemainingMembers::Nodes(self.input.length()?, true), None),
            20 => (Type::Set, RemainingMembers::Nothing, self.packed(PackedEncoding::Listpack)?),
            22 => (Type::Hash, self.timed_fields(FieldExpiryEncoding::Absolute)?, None),
            23 => (Type::Hash, RemainingMembers::Nothing, self.packed(PackedEncoding::Listpack)?),
            24 => {
                let times = FieldExpiryEncoding::After(self.input.u64_le()?);
                (Type::Hash, self.timed_fields(times)?, None)
            }
            25 => {
                // The earliest expiry, which the pack contains too.
                self.input.u64_le()?;
                (Type::Hash, RemainingMembers::Nothing, self.packed(PackedEncoding::Listpack)?)
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
        self.open = Some(OpenKey { key, kind, expire_ms, first, packed, timed, rest, ready });
        self.next_part()
    }

    fn members(&mut self, score: ScoreEncoding) -> Result<RemainingMembers, Failure> {
        Ok(RemainingMembers::Members(self.input.length()?, score))
    }

    fn packed(&mut self, form: PackedEncoding) -> Result<Option<PackedCollection>, Failure> {
        let packed = PackedCollection::new(self.input.string()?, form);
        if packed.is_none() { Err(self.wrong_pack()) } else { Ok(packed) }
    }

    fn wrong_pack(&self) -> Failure {
        self.input.failure("a packed collection is not valid")
    }

    /// Reads another element of a packed collection; `false` when there are no more.
    fn unpack_more(&mut self, open: &mut OpenKey) -> Result<bool, Failure> {
        let Some(packed) = &mut open.packed else { return Ok(false) };
        let word = match packed.next() {
            NextElement::Element(word) => word,
            NextElement::Wrong => return Err(self.wrong_pack()),
            NextElement::End => {
                open.packed = None;
                return Ok(false);
            }
        };
        if !open.timed {
            open.ready.push_back(word);
            return Ok(true);
        }
        let (NextElement::Element(value), NextElement::Element(when)) =
            (packed.next(), packed.next())
        else {
            return Err(self.wrong_pack());
        };
        let when = std::str::from_utf8(&when).ok().and_then(|text| text.parse().ok());
        let time = when.and_then(|when| FieldExpiryEncoding::Absolute.classify(when, self.now_ms));
        if self.keeps_field(time)? {
            open.ready.extend([word, value]);
        }
        Ok(true)
    }

    fn timed_fields(&mut self, times: FieldExpiryEncoding) -> Result<RemainingMembers, Failure> {
        Ok(RemainingMembers::TimedFields(self.input.length()?, times))
    }

    /// Whether a field is imported. An expired field is left out. Other expiries are dropped and
    /// counted, because fields have none here.
    fn keeps_field(&mut self, time: Option<FieldExpiry>) -> Result<bool, Failure> {
        match time {
            None => return Err(self.input.failure("a field's expiry is no time")),
            Some(FieldExpiry::Never) => {}
            Some(FieldExpiry::Later) => self.skip("expiries of fields, which are kept without"),
            Some(FieldExpiry::Over) => self.skip("fields that have expired"),
        }
        Ok(time != Some(FieldExpiry::Over))
    }

    /// The next chunk of the open key.
    pub(super) fn next_part(&mut self) -> Result<Option<Chunk>, Failure> {
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
            // All fields have expired, or the key never had any.
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
    fn read_more(&mut self, open: &mut OpenKey) -> Result<bool, Failure> {
        if self.unpack_more(open)? {
            return Ok(true);
        }
        match open.rest {
            RemainingMembers::Nothing
            | RemainingMembers::Members(0, _)
            | RemainingMembers::Nodes(0, _)
            | RemainingMembers::TimedFields(0, _) => {
                return Ok(false);
            }
            RemainingMembers::Members(left, score) => {
                open.rest = RemainingMembers::Members(left - 1, score);
                open.ready.push_back(self.input.string()?);
                match (open.kind, score) {
                    (Type::Hash, _) => open.ready.push_back(self.input.string()?),
                    (_, ScoreEncoding::Text) => {
                        open.ready.push_back(score_text(self.input.text_score()?).into());
                    }
                    (_, ScoreEncoding::Binary) => {
                        open.ready.push_back(score_text(self.input.binary_score()?).into());
                    }
                    (_, ScoreEncoding::None) => {}
                }
            }
            RemainingMembers::Nodes(left, tagged) => {
                open.rest = RemainingMembers::Nodes(left - 1, tagged);
                let container = if tagged { Some(self.input.length()?) } else { None };
                match container {
                    None => open.packed = self.packed(PackedEncoding::Ziplist)?,
                    Some(1) => open.ready.push_back(self.input.string()?),
                    Some(2) => open.packed = self.packed(PackedEncoding::Listpack)?,
                    Some(_) => return Err(self.input.failure("a list's node has an unknown form")),
                }
            }
            RemainingMembers::TimedFields(left, times) => {
                open.rest = RemainingMembers::TimedFields(left - 1, times);
                let time = times.classify(self.input.length()?, self.now_ms);
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
                Body::String { bytes, .. } => *bytes = word,
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
