//! The ZRANGE family, and what else takes bounds.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::commands::sink::{Head, ReplySink};
use crate::commands::stream;
use crate::error::{Error, ErrorKind, Result};
use crate::types::number::parse_integer;
use crate::types::txn::Tx;
use crate::types::zset::text::{parse_lex_bounds, parse_score_bound};
use crate::types::zset::{By, Viewer, ZRange};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rank,
    Score,
    Lex,
}

/// What a command of the family has settled by its name.
#[derive(Clone, Copy, Default)]
struct Form {
    kind: Option<Kind>,
    reverse: Option<bool>,
    /// WITHSCORES is no word of a command that stores.
    stores: bool,
}

impl Form {
    const fn of(kind: Kind, reverse: bool) -> Self {
        Self { kind: Some(kind), reverse: Some(reverse), stores: false }
    }
}

/// The words after the ends of a range.
struct Options {
    form: Form,
    limit: (i64, i64),
    with_scores: bool,
}

/// The two functions of a command of the family: what it replies, and the same piece by piece.
macro_rules! family {
    ($($name:ident, $into:ident: $form:expr;)*) => {
        $(pub(crate) fn $name(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
            range(tx, args, $form)
        }

        pub(crate) fn $into(
            tx: &mut Tx<'_>,
            args: Args<'_>,
            sink: &mut dyn ReplySink,
        ) -> Result<()> {
            range_into(tx, args, $form, sink)
        })*
    };
}

family! {
    zrange, zrange_into: Form::default();
    zrevrange, zrevrange_into: Form::of(Kind::Rank, true);
    zrangebyscore, zrangebyscore_into: Form::of(Kind::Score, false);
    zrevrangebyscore, zrevrangebyscore_into: Form::of(Kind::Score, true);
    zrangebylex, zrangebylex_into: Form::of(Kind::Lex, false);
    zrevrangebylex, zrevrangebylex_into: Form::of(Kind::Lex, true);
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

fn range(tx: &mut Tx<'_>, mut args: Args<'_>, form: Form) -> Result<Reply> {
    let key = args.bytes()?;
    let (range, with_scores) = parse(&mut args, form)?;
    if with_scores {
        return Ok(super::members(tx.zrange_withscores(key, &range)?, true));
    }
    Ok(Reply::list(tx.zrange(key, &range)?))
}

fn range_into(tx: &Tx<'_>, mut args: Args<'_>, form: Form, sink: &mut dyn ReplySink) -> Result<()> {
    let key = args.bytes()?;
    let (range, with_scores) = parse(&mut args, form)?;
    let begin = sink.position();
    let mut written = Written { sink, with_scores, expected: false, count: 0 };
    tx.show_range(key, &range, with_scores, &mut written)?;
    let (expected, count, head) = (written.expected, written.count, written.head());
    // A range by score or by member is not counted first, which would be a second walk.
    if !expected {
        sink.insert_head(begin, head, count);
    }
    Ok(())
}

/// Writes the members it is shown.
struct Written<'s> {
    sink: &'s mut dyn ReplySink,
    with_scores: bool,
    /// Whether the head is written.
    expected: bool,
    count: usize,
}

impl Written<'_> {
    fn head(&self) -> Head {
        if self.with_scores { Head::Pairs } else { Head::Array }
    }
}

impl Viewer for Written<'_> {
    fn expect(&mut self, count: u64) -> Result<()> {
        self.sink.head(self.head(), stream::count(count)?);
        self.expected = true;
        Ok(())
    }

    fn show(&mut self, member: &[u8], score: f64) -> Result<bool> {
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

/// Reads the ends and the options of a range: the options first, then whether they go together,
/// then the ends, whose meaning they decide. And whether scores are asked for.
fn parse<'a>(args: &mut Args<'a>, form: Form) -> Result<(ZRange<'a>, bool)> {
    let (start, stop) = (args.bytes()?, args.bytes()?);
    let options = options(args, form)?;
    let kind = options.form.kind.unwrap_or(Kind::Rank);
    let reverse = options.form.reverse.unwrap_or(false);
    let (offset, count) = options.limit;
    // As in the reference a limit of -1, which is none, goes with everything.
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
