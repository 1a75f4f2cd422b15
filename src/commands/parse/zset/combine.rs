//! ZUNION, ZINTER, ZDIFF, their STORE forms, and ZINTERCARD.
//!
//! Redis looks up the keys before it reads the options, so a key of the wrong type is the first
//! error.

use super::integer_from;
use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::commands::sink::ReplySink;
use crate::error::Result;
use crate::txn::Tx;
use crate::types::number::parse_integer;
use crate::types::zset::text::parse_score;
use crate::types::zset::{Aggregate, Combine, Inputs, Operation, needs_a_key, not_a_weight};

pub(crate) fn zunion(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let inputs = inputs(tx, &mut args, "zunion")?;
    let options = Options::parse(args, &inputs, Words::WEIGHTED.with_scores())?;
    let members = inputs.combine(tx, Operation::Union(options.how()))?;
    super::write_members(members, options.with_scores, sink);
    Ok(())
}

pub(crate) fn zinter(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let inputs = inputs(tx, &mut args, "zinter")?;
    let options = Options::parse(args, &inputs, Words::WEIGHTED.with_scores())?;
    let members = inputs.combine(tx, Operation::Intersection(options.how()))?;
    super::write_members(members, options.with_scores, sink);
    Ok(())
}

pub(crate) fn zdiff(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let inputs = inputs(tx, &mut args, "zdiff")?;
    let options = Options::parse(args, &inputs, Words::NONE.with_scores())?;
    let members = inputs.combine(tx, Operation::Difference)?;
    super::write_members(members, options.with_scores, sink);
    Ok(())
}

pub(crate) fn zunionstore(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let destination = args.bytes()?;
    let inputs = inputs(tx, &mut args, "zunionstore")?;
    let options = Options::parse(args, &inputs, Words::WEIGHTED)?;
    Ok(inputs.store(tx, destination, Operation::Union(options.how()))?.into_reply())
}

pub(crate) fn zinterstore(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let destination = args.bytes()?;
    let inputs = inputs(tx, &mut args, "zinterstore")?;
    let options = Options::parse(args, &inputs, Words::WEIGHTED)?;
    Ok(inputs.store(tx, destination, Operation::Intersection(options.how()))?.into_reply())
}

pub(crate) fn zdiffstore(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let destination = args.bytes()?;
    let inputs = inputs(tx, &mut args, "zdiffstore")?;
    Options::parse(args, &inputs, Words::NONE)?;
    Ok(inputs.store(tx, destination, Operation::Difference)?.into_reply())
}

pub(crate) fn zintercard(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let inputs = inputs(tx, &mut args, "zintercard")?;
    let mut limit = 0;
    while !args.is_empty() {
        if args.len() < 2 || !args.take_word("LIMIT") {
            return Err(syntax_error());
        }
        limit = integer_from(args.bytes()?, 0, "ERR LIMIT can't be negative")?;
    }
    Ok(inputs.intersection_size(tx, limit)?.into_reply())
}

/// Parses the number of keys and the keys, and looks them up.
fn inputs(tx: &mut Tx<'_>, args: &mut Args<'_>, name: &str) -> Result<Inputs> {
    let number = parse_integer(args.bytes()?)?;
    if number < 1 {
        return Err(needs_a_key(name));
    }
    let keys = args.take(usize::try_from(number).unwrap_or(usize::MAX))?;
    tx.as_read(|tx| tx.zset_inputs(keys, name))
}

/// The options that a command accepts.
#[derive(Clone, Copy)]
struct Words {
    weights: bool,
    scores: bool,
}

impl Words {
    const NONE: Self = Self { weights: false, scores: false };
    const WEIGHTED: Self = Self { weights: true, scores: false };

    fn with_scores(self) -> Self {
        Self { scores: true, ..self }
    }
}

#[derive(Default)]
struct Options {
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

impl Options {
    fn parse(mut args: Args<'_>, inputs: &Inputs, words: Words) -> Result<Self> {
        let mut options = Self::default();
        while !args.is_empty() {
            if words.weights && args.len() > inputs.len() && args.take_word("WEIGHTS") {
                let weights = args.take(inputs.len())?.iter();
                let weights = weights.map(|text| parse_score(text).map_err(|_| not_a_weight()));
                options.weights = weights.collect::<Result<_>>()?;
            } else if words.weights && args.len() > 1 && args.take_word("AGGREGATE") {
                options.aggregate = aggregate(&mut args)?;
            } else if words.scores && args.take_word("WITHSCORES") {
                options.with_scores = true;
            } else {
                return Err(syntax_error());
            }
        }
        Ok(options)
    }

    fn how(&self) -> Combine<'_> {
        Combine { weights: &self.weights, aggregate: self.aggregate }
    }
}

fn aggregate(args: &mut Args<'_>) -> Result<Aggregate> {
    if args.take_word("SUM") {
        Ok(Aggregate::Sum)
    } else if args.take_word("MIN") {
        Ok(Aggregate::Min)
    } else if args.take_word("MAX") {
        Ok(Aggregate::Max)
    } else {
        Err(syntax_error())
    }
}
