//! ZADD and ZINCRBY.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::zset::ZAdd;
use crate::types::zset::text::parse_score;

pub(crate) fn zadd(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    add(tx, args, false)
}

/// Runs ZINCRBY. Redis parses it as ZADD with INCR, so a word that is a ZADD option is a syntax
/// error instead of a bad number.
pub(crate) fn zincrby(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    add(tx, args, true)
}

fn add(tx: &mut Tx<'_>, mut args: Args<'_>, increment: bool) -> Result<Reply> {
    let key = args.bytes()?;
    let (options, incr) = options(&mut args);
    let increment = increment || incr;
    let pairs = args.all();
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(syntax_error());
    }
    options.check()?;
    if increment && pairs.len() > 2 {
        let text = "ERR INCR option supports a single increment-element pair";
        return Err(Error::new(ErrorKind::Syntax, text));
    }
    let members = pairs.chunks_exact(2).map(|pair| match pair {
        [score, member] => Ok((parse_score(score)?, *member)),
        _ => Err(syntax_error()),
    });
    let members = members.collect::<Result<Vec<_>>>()?;
    match members.as_slice() {
        [(score, member)] if increment => {
            Ok(tx.zadd_incr(key, *score, member, options)?.into_reply())
        }
        members => Ok(tx.zadd(key, members, options)?.into_reply()),
    }
}

/// Parses the options, and tells whether INCR is one of them.
fn options(args: &mut Args<'_>) -> (ZAdd, bool) {
    let (mut options, mut increment) = (ZAdd::default(), false);
    loop {
        let option = if args.take_word("NX") {
            &mut options.nx
        } else if args.take_word("XX") {
            &mut options.xx
        } else if args.take_word("GT") {
            &mut options.gt
        } else if args.take_word("LT") {
            &mut options.lt
        } else if args.take_word("CH") {
            &mut options.ch
        } else if args.take_word("INCR") {
            &mut increment
        } else {
            return (options, increment);
        };
        *option = true;
    }
}
