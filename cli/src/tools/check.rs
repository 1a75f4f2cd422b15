//! `lsmkv check DIR`: whether everything stored can be read and fits together.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Args;
use lsmkv::Db;

use crate::failure::{Failure, Outcome};
use crate::store::InspectArgs;
use crate::transfer::{Interrupt, Progress};

/// Arguments of `check`.
#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    store: InspectArgs,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

/// Lists what is wrong; exit status 1 if anything is.
pub(crate) fn check(args: &CheckArgs) -> Outcome {
    let mut out = std::io::stdout().lock();
    let db = match args.store.open_to_read() {
        Ok(db) => db,
        // A store that does not open because it is damaged is a finding, not a failure to check.
        Err(failure) if failure.is_damage() => {
            writeln!(out, "{failure}")?;
            writeln!(out, "1 problem; see `lsmkv repair`")?;
            return Ok(ExitCode::FAILURE);
        }
        Err(failure) => return Err(failure),
    };
    let problems = problems(&db, Interrupt::catch(), args.quiet)?;
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

/// Everything that is wrong, a line each.
pub(crate) fn problems(db: &Db, interrupt: Interrupt, quiet: bool) -> Result<Vec<String>, Failure> {
    let mut progress = Progress::new("bytes", interrupt, quiet);
    let damaged = db.verify(|done, total| {
        progress.expect(Some(total));
        progress.set(done);
        if progress.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    progress.finish();
    let mut problems: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    match db.check() {
        Ok(found) => problems.extend(found),
        // The walk over the types stops at a block that was listed already.
        Err(_) if !problems.is_empty() => {
            problems
                .push("keys and members were not compared: the damage is in the way".to_owned());
        }
        Err(error) => problems.push(error.to_string()),
    }
    Ok(problems)
}
