//! `lsmkv compact` and `lsmkv checkpoint`.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lsmkv::Db;

use super::inspect::human_bytes;
use crate::failure::{Failure, Outcome};
use crate::store::StoreArgs;
use crate::transfer::{Interrupt, Progress};

/// How often a compaction looks for an interruption. A store of some megabytes is compacted in less
/// than the time between two updates of a progress display.
const INTERRUPT_POLL: Duration = Duration::from_millis(5);

/// Arguments of `compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Show no progress
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
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

fn table_bytes(db: &Db) -> Result<u64, Failure> {
    Ok(db.tables()?.iter().map(|table| table.bytes).sum())
}

/// Deletes expired keys and rewrites all tables, so that no garbage is left.
pub(crate) fn compact(args: &CompactArgs) -> Outcome {
    let db = args.store.open_existing()?;
    let progress = Progress::new("bytes", Interrupt::catch(), args.quiet);
    let (before, expired) = rewrite(&db, progress)?;
    let after = table_bytes(&db)?;
    db.close()?;
    let (before, after) = (human_bytes(before), human_bytes(after));
    writeln!(std::io::stdout(), "{before} before, {after} after, {expired} expired keys deleted")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the size of the tables before, and the number of expired keys. The work runs in another
/// thread, so that an interruption can close the store: that ends a compaction between two tables,
/// and tables that are not installed have no effect.
fn rewrite(db: &Db, mut progress: Progress) -> Result<(u64, u64), Failure> {
    let written = || db.engine_stats().merge_written_bytes;
    let start = written();
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            db.flush()?;
            let before = table_bytes(db)?;
            let expired = db.clean_expired()?;
            db.compact()?;
            Ok((before, expired))
        });
        while !work.is_finished() {
            if progress.interrupted() {
                db.close()?;
                return Err(Failure::new("stopped; the store holds what it held"));
            }
            progress.set(written().saturating_sub(start));
            std::thread::sleep(INTERRUPT_POLL);
        }
        progress.finish();
        work.join().unwrap_or_else(|_| Err(Failure::new("the compaction died")))
    })
}

pub(crate) fn checkpoint(args: &CheckpointArgs) -> Outcome {
    let interrupt = Interrupt::catch();
    let db = args.store.open_existing()?;
    if args.copy {
        let mut progress = Progress::new("bytes", interrupt, args.quiet);
        let whole = db.backup(&args.out, |done, total| {
            progress.expect(Some(total));
            progress.set(done);
            if progress.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if !whole {
            return Err(Failure::new("stopped; nothing was written"));
        }
    } else {
        // Links take very little time, so an interruption leaves a complete copy.
        db.checkpoint(&args.out)?;
    }
    db.close()?;
    Ok(ExitCode::SUCCESS)
}
