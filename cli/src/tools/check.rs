//! `lsmkv check DIR`: checks that all stored data is readable and consistent.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use lsmkv::Db;

use crate::failure::{Failure, Outcome};
use crate::store::ReadOnlyStoreArgs;
use crate::transfer::{Interrupt, Progress};

/// Arguments of `check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    store: ReadOnlyStoreArgs,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Lists all problems; the exit status is 1 if there are any.
pub(crate) fn check(args: &CheckArgs) -> Outcome {
    let mut out = std::io::stdout().lock();
    let db = match args.store.open_to_read() {
        Ok(db) => db,
        // Damage that prevents opening is a finding, not a failure of the check.
        Err(failure) if failure.is_damage() => {
            writeln!(out, "{failure}")?;
            writeln!(out, "1 problem; see `lsmkv repair`")?;
            return Ok(ExitCode::FAILURE);
        }
        Err(failure) => return Err(failure),
    };
    let problems = problems(&db, &Interrupt::catch(), args.quiet)?;
    for problem in &problems {
        writeln!(out, "{problem}")?;
    }
    match problems.len() {
        0 => writeln!(out, "no problems")?,
        1 => writeln!(out, "1 problem; see `lsmkv repair`")?,
        count => writeln!(out, "{count} problems; see `lsmkv repair`")?,
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns all problems, one line each. The library checks for an interruption only between two
/// tables, and not at all while it compares keys and members. Since it only reads, an interruption
/// abandons it.
pub(crate) fn problems(
    db: &Db,
    interrupt: &Interrupt,
    quiet: bool,
) -> Result<Vec<String>, Failure> {
    let mut progress = Progress::new("bytes", interrupt.clone(), quiet);
    let read = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let (db, noted, stop) = (db.clone(), Arc::clone(&read), interrupt.clone());
    let found = interrupt.run_interruptible(
        move || find_problems(&db, &noted, &stop),
        || {
            let [done, total] = [0, 1].map(|at| read.get(at).map(|it| it.load(Ordering::Relaxed)));
            progress.expect(total);
            progress.set(done.unwrap_or(0));
        },
    );
    found.unwrap_or_else(|| Err(Failure::new("stopped; nothing was found out")))
}

fn find_problems(
    db: &Db,
    [read, all]: &[AtomicU64; 2],
    interrupt: &Interrupt,
) -> Result<Vec<String>, Failure> {
    let damaged = db.verify(|done, total| {
        read.store(done, Ordering::Relaxed);
        all.store(total, Ordering::Relaxed);
        if interrupt.raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let mut problems: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    match db.check() {
        Ok(found) => problems.extend(found),
        // The comparison of keys and members stops at a block that is already listed.
        Err(_) if !problems.is_empty() => {
            problems
                .push("keys and members were not compared: the damage is in the way".to_owned());
        }
        Err(error) => problems.push(error.to_string()),
    }
    Ok(problems)
}
