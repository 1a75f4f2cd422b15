//! Commands whose replies may be as long as a collection, element by element from the rows to the
//! receiver: nothing of them is held in between. Each does what the method of `Tx` named like it
//! does.

use super::sink::{Head, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::types::Type;
use crate::types::txn::Tx;

/// A number of elements, as a receiver counts them.
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
    let Some(mut listing) = tx.listing(key, kind)? else {
        sink.head(head, 0);
        return Ok(());
    };
    sink.head(head, count(listing.len())?);
    while !sink.is_full() && listing.advance()? {
        write(sink, listing.member(), listing.value());
    }
    Ok(())
}

pub(crate) fn mget(tx: &Tx<'_>, keys: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
    sink.head(Head::Array, keys.len());
    for key in keys {
        if sink.is_full() {
            break;
        }
        bulk_or_nil(sink, tx.get_if_string(key)?.as_deref());
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
        bulk_or_nil(sink, value.as_deref());
        !sink.is_full()
    })
}

fn bulk_or_nil(sink: &mut dyn ReplySink, value: Option<&[u8]>) {
    match value {
        Some(value) => sink.bulk(value),
        None => sink.nil(),
    }
}
