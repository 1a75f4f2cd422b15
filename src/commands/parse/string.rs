//! Parsers of string commands.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::Reply;
use crate::commands::sink::{Head, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::parse_integer;
use crate::types::{
    Condition, Expiry, GetExpiry, Lcs, LcsMatch, SetExpiry, SetOptions, SetOutcome,
};

/// An expiry whose number is still text. Redis reports a wrong word anywhere before a wrong number.
struct UnreadExpiry<'a> {
    unit: &'static str,
    number: &'a [u8],
}

impl<'a> UnreadExpiry<'a> {
    /// Takes an expiry if the next word begins one. After `before`, only the unit of `before` is
    /// allowed.
    fn take(args: &mut Args<'a>, before: Option<&Self>) -> Result<Option<Self>> {
        for unit in ["EX", "PX", "EXAT", "PXAT"] {
            if before.is_none_or(|before| before.unit == unit) && args.take_word(unit) {
                return Ok(Some(Self { unit, number: args.bytes()? }));
            }
        }
        Ok(None)
    }

    fn read(&self) -> Result<Expiry> {
        let number = parse_integer(self.number)?;
        Ok(match self.unit {
            "EX" => Expiry::Seconds(number),
            "PX" => Expiry::Milliseconds(number),
            "EXAT" => Expiry::AtSeconds(number),
            _ => Expiry::AtMilliseconds(number),
        })
    }
}

pub(crate) fn set(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, value) = (args.bytes()?, args.bytes()?);
    let options = set_options(args)?;
    let outcome = tx.set_with(key, value, options)?;
    Ok(set_reply(options, outcome))
}

/// SET whose value `put` puts, with its expiry. `options` are the arguments after the value.
#[cfg(feature = "server")]
pub(crate) fn set_by<'s>(
    tx: &mut Tx<'s>,
    key: &[u8],
    options: Args<'_>,
    put: impl FnOnce(&mut Tx<'s>, u64) -> Result<()>,
) -> Result<Reply> {
    let options = set_options(options)?;
    let outcome = tx.set_with_by(key, options, put)?;
    Ok(set_reply(options, outcome))
}

fn set_reply(options: SetOptions, outcome: SetOutcome) -> Reply {
    match outcome.written {
        _ if options.get => Reply::bulk(outcome.old),
        true => Reply::OK,
        false => Reply::Nil,
    }
}

fn set_options(mut args: Args<'_>) -> Result<SetOptions> {
    let mut options = SetOptions::default();
    let mut expiry: Option<UnreadExpiry<'_>> = None;
    while !args.is_empty() {
        if options.condition != Condition::IfExists && args.take_word("NX") {
            options.condition = Condition::IfMissing;
        } else if options.condition != Condition::IfMissing && args.take_word("XX") {
            options.condition = Condition::IfExists;
        } else if args.take_word("GET") {
            options.get = true;
        } else if expiry.is_none() && args.take_word("KEEPTTL") {
            options.expiry = SetExpiry::Keep;
        } else if options.expiry != SetExpiry::Keep {
            let taken = UnreadExpiry::take(&mut args, expiry.as_ref())?;
            expiry = Some(taken.ok_or_else(syntax_error)?);
        } else {
            return Err(syntax_error());
        }
    }
    if let Some(expiry) = expiry {
        options.expiry = SetExpiry::At(expiry.read()?);
    }
    Ok(options)
}

pub(crate) fn getex(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let mut persist = false;
    let mut expiry: Option<UnreadExpiry<'_>> = None;
    while !args.is_empty() {
        if expiry.is_none() && args.take_word("PERSIST") {
            persist = true;
        } else if persist {
            return Err(syntax_error());
        } else {
            let taken = UnreadExpiry::take(&mut args, expiry.as_ref())?;
            expiry = Some(taken.ok_or_else(syntax_error)?);
        }
    }
    let change = match expiry {
        // A wrong number matters only if the key exists.
        Some(_) if tx.as_read(|tx| tx.get(key))?.is_none() => return Ok(Reply::Nil),
        Some(expiry) => GetExpiry::At(expiry.read()?),
        None if persist => GetExpiry::Persist,
        None => GetExpiry::Keep,
    };
    Ok(Reply::bulk(tx.getex(key, change)?))
}

pub(crate) fn lcs(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let strings = tx.two_strings(args.bytes()?, args.bytes()?)?;
    let (mut len, mut indexes, mut with_len, mut least) = (false, false, false, 0);
    while !args.is_empty() {
        if args.take_word("LEN") {
            len = true;
        } else if args.take_word("IDX") {
            indexes = true;
        } else if args.take_word("WITHMATCHLEN") {
            with_len = true;
        } else if args.take_word("MINMATCHLEN") {
            least = args.integer()?;
        } else {
            return Err(syntax_error());
        }
    }
    if len && indexes {
        let text = "ERR If you want both the length and indexes, please just use IDX.";
        return Err(Error::new(ErrorKind::Syntax, text));
    }
    let common = tx.common_subsequence(&strings)?;
    if indexes {
        lcs_indexes(&common, least, with_len, sink);
    } else if len {
        int(common.text.len(), sink);
    } else {
        sink.shared_bulk(common.text);
    }
    Ok(())
}

fn lcs_indexes(common: &Lcs, least: i64, with_len: bool, sink: &mut dyn ReplySink) {
    let least = usize::try_from(least).unwrap_or(0);
    let shown = |found: &&LcsMatch| found.len >= least;
    sink.head(Head::Map, 2);
    sink.bulk(b"matches");
    sink.head(Head::Array, common.matches.iter().filter(shown).count());
    for found in common.matches.iter().filter(shown) {
        sink.head(Head::Array, if with_len { 3 } else { 2 });
        for start in [found.a, found.b] {
            sink.head(Head::Array, 2);
            int(start, sink);
            int(start + found.len - 1, sink);
        }
        if with_len {
            int(found.len, sink);
        }
    }
    sink.bulk(b"len");
    int(common.text.len(), sink);
}

fn int(number: usize, sink: &mut dyn ReplySink) {
    sink.integer(i64::try_from(number).unwrap_or(i64::MAX));
}
