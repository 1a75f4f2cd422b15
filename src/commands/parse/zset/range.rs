//! The ZRANGE family, and other commands with bounds.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::commands::sink::ReplySink;
use crate::commands::stream;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::parse_integer;
use crate::types::zset::text::{parse_lex_bounds, parse_score_bound};
use crate::types::zset::{By, ZRange};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rank,
    Score,
    Lex,
}

/// What the name of a command fixes.
#[derive(Clone, Copy, Default)]
struct Form {
    kind: Option<Kind>,
    reverse: Option<bool>,
    /// Whether the command stores its result. It then has no WITHSCORES.
    stores: bool,
}

impl Form {
    const fn of(kind: Kind, reverse: bool) -> Self {
        Self { kind: Some(kind), reverse: Some(reverse), stores: false }
    }
}

/// The words after the bounds of a range.
struct Options {
    form: Form,
    limit: (i64, i64),
    with_scores: bool,
}

/// Defines the commands that read a range.
macro_rules! ranges {
    ($($name:ident: $form:expr;)*) => {
        $(pub(crate) fn $name(
            tx: &mut Tx<'_>,
            args: Args<'_>,
            sink: &mut dyn ReplySink,
        ) -> Result<()> {
            range(tx, args, $form, sink)
        })*
    };
}

ranges! {
    zrange: Form::default();
    zrevrange: Form::of(Kind::Rank, true);
    zrangebyscore: Form::of(Kind::Score, false);
    zrevrangebyscore: Form::of(Kind::Score, true);
    zrangebylex: Form::of(Kind::Lex, false);
    zrevrangebylex: Form::of(Kind::Lex, true);
}

pub(crate) fn zrangestore(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (destination, source) = (args.bytes()?, args.bytes()?);
    let (range, _) = parse(&mut args, Form { stores: true, ..Form::default() })?;
    Ok(tx.zrangestore(destination, source, &range)?.into_reply())
}

pub(crate) fn zcount(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let (min, max) = (parse_score_bound(args.bytes()?)?, parse_score_bound(args.bytes()?)?);
    Ok(tx.zcount(key, min, max)?.into_reply())
}

pub(crate) fn zlexcount(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let (min, max) = parse_lex_bounds(args.bytes()?, args.bytes()?)?;
    Ok(tx.zlexcount(key, min, max)?.into_reply())
}

pub(crate) fn zremrangebyscore(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let (min, max) = (parse_score_bound(args.bytes()?)?, parse_score_bound(args.bytes()?)?);
    Ok(tx.zremrangebyscore(key, min, max)?.into_reply())
}

pub(crate) fn zremrangebylex(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let (min, max) = parse_lex_bounds(args.bytes()?, args.bytes()?)?;
    Ok(tx.zremrangebylex(key, min, max)?.into_reply())
}

fn range(tx: &Tx<'_>, mut args: Args<'_>, form: Form, sink: &mut dyn ReplySink) -> Result<()> {
    let key = args.bytes()?;
    let (range, with_scores) = parse(&mut args, form)?;
    stream::zrange(tx, key, &range, with_scores, sink)
}

/// Parses the bounds and the options of a range, and tells whether scores are wanted. It reads the
/// options first and checks that they fit together, since they decide the meaning of the bounds.
fn parse<'a>(args: &mut Args<'a>, form: Form) -> Result<(ZRange<'a>, bool)> {
    let (start, stop) = (args.bytes()?, args.bytes()?);
    let options = options(args, form)?;
    let kind = options.form.kind.unwrap_or(Kind::Rank);
    let reverse = options.form.reverse.unwrap_or(false);
    let (offset, count) = options.limit;
    // As in Redis, a limit of -1 means no limit and is allowed for every range.
    if count != -1 && kind == Kind::Rank {
        return Err(conflict(
            "LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ));
    }
    if options.with_scores && kind == Kind::Lex {
        return Err(conflict("WITHSCORES not supported in combination with BYLEX"));
    }
    let (min, max) = if reverse { (stop, start) } else { (start, stop) };
    let by = match kind {
        Kind::Rank => By::Rank(parse_integer(start)?, parse_integer(stop)?),
        Kind::Score => By::Score(parse_score_bound(min)?, parse_score_bound(max)?),
        Kind::Lex => {
            let (min, max) = parse_lex_bounds(min, max)?;
            By::Lex(min, max)
        }
    };
    Ok((ZRange { by, reverse, offset, count }, options.with_scores))
}

fn options(args: &mut Args<'_>, form: Form) -> Result<Options> {
    let mut options = Options { form, limit: (0, -1), with_scores: false };
    while !args.is_empty() {
        let form = &mut options.form;
        if !form.stores && args.take_word("WITHSCORES") {
            options.with_scores = true;
        } else if args.len() > 2 && args.take_word("LIMIT") {
            options.limit = (args.integer()?, args.integer()?);
        } else if form.reverse.is_none() && args.take_word("REV") {
            form.reverse = Some(true);
        } else if form.kind.is_none() && args.take_word("BYLEX") {
            form.kind = Some(Kind::Lex);
        } else if form.kind.is_none() && args.take_word("BYSCORE") {
            form.kind = Some(Kind::Score);
        } else {
            return Err(syntax_error());
        }
    }
    Ok(options)
}

fn conflict(what: &str) -> Error {
    Error::new(ErrorKind::Syntax, format!("ERR syntax error, {what}"))
}
