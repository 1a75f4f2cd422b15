//! Commands whose replies may be as long as a collection. Each walks over the rows and writes the
//! reply element by element, so that the reply is never in memory as a whole.

use super::sink::{Head, ReplySink};
use super::write_to::WriteTo;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::zset::{ScoredSink, ZRange};
use crate::types::{SetOperation, StringValue, Type};

/// A number of elements as the length of an aggregate.
pub(crate) fn count(number: u64) -> Result<usize> {
    usize::try_from(number)
        .map_err(|_| Error::new(ErrorKind::TooLarge, "more elements than memory has places"))
}

pub(crate) fn lrange(
    tx: &Tx<'_>,
    key: &[u8],
    start: i64,
    stop: i64,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let Some(mut run) = tx.elements_between(key, start, stop)? else {
        sink.head(Head::Array, 0);
        return Ok(());
    };
    sink.head(Head::Array, count(run.len())?);
    while !sink.is_full() && run.advance()? {
        sink.bulk(run.element());
    }
    Ok(())
}

pub(crate) fn smembers(tx: &Tx<'_>, key: &[u8], sink: &mut dyn ReplySink) -> Result<()> {
    members(tx, key, Type::Set, Head::Set, sink, |sink, member, _| sink.bulk(member))
}

pub(crate) fn hgetall(tx: &Tx<'_>, key: &[u8], sink: &mut dyn ReplySink) -> Result<()> {
    members(tx, key, Type::Hash, Head::Map, sink, |sink, field, value| {
        sink.bulk(field);
        sink.bulk(value);
    })
}

pub(crate) fn hkeys(tx: &Tx<'_>, key: &[u8], sink: &mut dyn ReplySink) -> Result<()> {
    members(tx, key, Type::Hash, Head::Array, sink, |sink, field, _| sink.bulk(field))
}

pub(crate) fn hvals(tx: &Tx<'_>, key: &[u8], sink: &mut dyn ReplySink) -> Result<()> {
    members(tx, key, Type::Hash, Head::Array, sink, |sink, _, value| sink.bulk(value))
}

fn members(
    tx: &Tx<'_>,
    key: &[u8],
    kind: Type,
    head: Head,
    sink: &mut dyn ReplySink,
    write: impl Fn(&mut dyn ReplySink, &[u8], &[u8]),
) -> Result<()> {
    let Some(mut listing) = tx.all_members(key, kind)? else {
        sink.head(head, 0);
        return Ok(());
    };
    sink.head(head, count(listing.len())?);
    while !sink.is_full() && listing.advance()? {
        write(sink, listing.member(), listing.value());
    }
    Ok(())
}

pub(crate) fn get(tx: &Tx<'_>, key: &[u8], sink: &mut dyn ReplySink) -> Result<()> {
    match tx.string(key)? {
        Some(StringValue::Chunked(long)) if sink.leaves_out(long.len()) => {}
        Some(value) => string(tx, value, sink)?,
        None => sink.nil(),
    }
    Ok(())
}

pub(crate) fn mget(tx: &Tx<'_>, keys: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
    sink.head(Head::Array, keys.len());
    for key in keys {
        if sink.is_full() {
            break;
        }
        match tx.string_or_none(key)? {
            Some(value) => string(tx, value, sink)?,
            None => sink.nil(),
        }
    }
    Ok(())
}

/// Writes a string; a large one chunk by chunk, if the sink takes parts.
fn string(tx: &Tx<'_>, value: StringValue, sink: &mut dyn ReplySink) -> Result<()> {
    match value {
        StringValue::Whole(value) => sink.shared_bulk(value),
        StringValue::Chunked(string) if sink.begin_bulk(string.len()) => {
            string.each_part(tx, 0..string.chunks.len, |part| sink.bulk_part(part))?;
            sink.end_bulk();
        }
        StringValue::Chunked(string) => {
            sink.shared_bulk(string.read(tx, 0..string.chunks.len)?);
        }
    }
    Ok(())
}

pub(crate) fn hmget(
    tx: &Tx<'_>,
    key: &[u8],
    fields: &[&[u8]],
    sink: &mut dyn ReplySink,
) -> Result<()> {
    sink.head(Head::Array, fields.len());
    tx.each_value(key, fields, |value| {
        value.write_to(sink);
        !sink.is_full()
    })
}

pub(crate) fn smismember(
    tx: &Tx<'_>,
    key: &[u8],
    members: &[&[u8]],
    sink: &mut dyn ReplySink,
) -> Result<()> {
    tx.smismember(key, members)?.write_to(sink);
    Ok(())
}

pub(crate) fn zmscore(
    tx: &Tx<'_>,
    key: &[u8],
    members: &[&[u8]],
    sink: &mut dyn ReplySink,
) -> Result<()> {
    tx.zmscore(key, members)?.write_to(sink);
    Ok(())
}

pub(crate) fn sdiff(tx: &Tx<'_>, keys: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
    counted(Head::Set, sink, |visit| tx.each_combined(SetOperation::Difference, keys, visit))
}

pub(crate) fn sinter(tx: &Tx<'_>, keys: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
    counted(Head::Set, sink, |visit| tx.each_combined(SetOperation::Intersection, keys, visit))
}

pub(crate) fn sunion(tx: &Tx<'_>, keys: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
    counted(Head::Set, sink, |visit| tx.each_combined(SetOperation::Union, keys, visit))
}

pub(crate) fn keys(tx: &Tx<'_>, pattern: &[u8], sink: &mut dyn ReplySink) -> Result<()> {
    counted(Head::Array, sink, |visit| tx.each_key(pattern, visit))
}

/// Writes the byte strings that `each` visits, whose number is known only afterwards.
fn counted(
    head: Head,
    sink: &mut dyn ReplySink,
    each: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<()>,
) -> Result<()> {
    let (begin, mut count) = (sink.position(), 0);
    each(&mut |bytes| {
        sink.bulk(bytes);
        count += 1;
        Ok(!sink.is_full())
    })?;
    sink.insert_head(begin, head, count);
    Ok(())
}

/// Writes a range of a sorted set. A range by score or by member counts its elements as it writes
/// them, since counting first would be a second walk.
pub(crate) fn zrange(
    tx: &Tx<'_>,
    key: &[u8],
    range: &ZRange<'_>,
    with_scores: bool,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let begin = sink.position();
    let mut members = RangeWriter { sink, with_scores, counted: false, count: 0 };
    tx.show_range(key, range, with_scores, &mut members)?;
    let (counted, count, head) = (members.counted, members.count, members.head());
    if !counted {
        sink.insert_head(begin, head, count);
    }
    Ok(())
}

/// Writes the members of a range.
struct RangeWriter<'s> {
    sink: &'s mut dyn ReplySink,
    with_scores: bool,
    /// Whether the head has been written.
    counted: bool,
    count: usize,
}

impl RangeWriter<'_> {
    fn head(&self) -> Head {
        if self.with_scores { Head::Pairs } else { Head::Array }
    }
}

impl ScoredSink for RangeWriter<'_> {
    fn expect(&mut self, number: u64) -> Result<()> {
        self.sink.head(self.head(), count(number)?);
        self.counted = true;
        Ok(())
    }

    fn push_scored(&mut self, member: &[u8], score: f64) -> Result<bool> {
        if self.with_scores {
            self.sink.pair();
        }
        self.sink.bulk(member);
        if self.with_scores {
            self.sink.double(score);
        }
        self.count += 1;
        Ok(!self.sink.is_full())
    }
}
