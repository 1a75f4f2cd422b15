//! Blocking commands, where they may not wait: in a transaction, a batch or EXEC.

use crate::commands::args::Args;
use crate::commands::blocking::run_now;
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::txn::Tx;

/// Runs BLMOVE without waiting.
pub(crate) fn blmove(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BLMOVE", tx, args)
}

/// Runs BLMPOP without waiting.
pub(crate) fn blmpop(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BLMPOP", tx, args)
}

/// Runs BLPOP without waiting.
pub(crate) fn blpop(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BLPOP", tx, args)
}

/// Runs BRPOP without waiting.
pub(crate) fn brpop(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BRPOP", tx, args)
}

/// Runs BRPOPLPUSH without waiting.
pub(crate) fn brpoplpush(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BRPOPLPUSH", tx, args)
}

/// Runs BZMPOP without waiting.
pub(crate) fn bzmpop(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BZMPOP", tx, args)
}

/// Runs BZPOPMAX without waiting.
pub(crate) fn bzpopmax(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BZPOPMAX", tx, args)
}

/// Runs BZPOPMIN without waiting.
pub(crate) fn bzpopmin(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    run_now("BZPOPMIN", tx, args)
}
