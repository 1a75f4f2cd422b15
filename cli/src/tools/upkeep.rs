//! `lsmkv compact` and `lsmkv checkpoint`.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lsmkv::Db;

use super::inspect::human;
use crate::failure::{Failure, Outcome};
use crate::store::StoreArgs;
use crate::transfer::{Interrupt, Progress};

/// Arguments of `compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `checkpoint`.
#[derive(Args, Debug)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Directory of the copy; must not exist
    out: PathBuf,
    /// Copy the files instead of linking them, e.g. to another disk; the copy is verified
    #[arg(long)]
    copy: bool,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

fn table_bytes(db: &Db) -> Result<u64, Failure> {
    Ok(db.tables()?.iter().map(|table| table.bytes).sum())
}

/// Deletes what has expired, then rewrites everything so that nothing dead is left.
pub(crate) fn compact(args: &CompactArgs) -> Outcome {
    let db = args.store.open()?;
    let progress = Progress::new("bytes", Interrupt::catch(), args.quiet);
    db.flush()?;
    let before = table_bytes(&db)?;
    let expired = db.clean_expired()?;
    rewrite(&db, progress)?;
    let after = table_bytes(&db)?;
    db.close()?;
    let (before, after) = (human(before), human(after));
    writeln!(std::io::stdout(), "{before} before, {after} after, {expired} expired keys deleted")?;
    Ok(ExitCode::SUCCESS)
}

/// Compacts in another thread, so that an interruption can close the store meanwhile: that ends a
/// compaction between two tables, and what it had not installed is as if it had not begun.
fn rewrite(db: &Db, mut progress: Progress) -> Result<(), Failure> {
    const LOOK: Duration = Duration::from_millis(50);
    let written = || db.engine_stats().merge_written_bytes;
    let start = written();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| db.compact());
        while !work.is_finished() {
            if progress.interrupted() {
                db.close()?;
                return Err(Failure::new("stopped; the store is as it was"));
            }
            progress.set(written().saturating_sub(start));
            std::thread::sleep(LOOK);
        }
        progress.finish();
        let ended = work.join().map_err(|_| Failure::new("the compaction died"))?;
        Ok(ended?)
    })
}

pub(crate) fn checkpoint(args: &CheckpointArgs) -> Outcome {
    let db = args.store.open()?;
    if args.copy {
        let mut progress = Progress::new("bytes", Interrupt::catch(), args.quiet);
        let whole = db.backup(&args.out, |done, total| {
            progress.expect(Some(total));
            progress.set(done);
            if progress.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !whole {
            return Err(Failure::new("stopped; nothing was written"));
        }
    } else {
        db.checkpoint(&args.out)?;
    }
    db.close()?;
    Ok(ExitCode::SUCCESS)
}
