//! `lsmkv repair DIR OUT`: builds a new store from the readable parts of a damaged one.
//!
//! 1. Salvage: the library builds a store from every readable block and record, in a scratch
//!    directory beside OUT. A collection there may have fewer members than its record says.
//! 2. Every key is copied to OUT by ordinary commands, with the members that exist. So OUT is
//!    consistent.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lsmkv::engine::{Loss, Salvaged};
use lsmkv::types::{KeyRange, Member, MemberRange};
use lsmkv::{CacheFill, Db, Error, ErrorKind, Options, Type};

use crate::failure::{Failure, Outcome};
use crate::store::{OptionArgs, WritableStore, refuse_shared};
use crate::transfer::{
    Body, CHUNK_BYTES, CHUNK_MEMBERS, Chunk, Interrupt, Progress, Sink, StoreSink,
};

/// Arguments of `repair`.
#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// Directory of the damaged store; it is only read
    dir: PathBuf,
    /// Directory of the new store; must not exist
    out: PathBuf,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    options: OptionArgs,
}

/// The result of the second step.
#[derive(Debug, Default)]
struct RebuildSummary {
    keys: u64,
    members: u64,
    /// Keys that lost members or could not be read, one line each.
    incomplete: Vec<String>,
}

/// Repairs a store; the exit status is 0 if nothing was lost, else 1.
pub(crate) fn repair(args: &RepairArgs) -> Outcome {
    let options = refuse_shared(args.options.to_options()?)?;
    if args.out.exists() {
        return Err(Failure::usage(format!("{}: it exists already", args.out.display())));
    }
    let interrupt = Interrupt::catch();
    let scratch = Scratch::beside(&args.out)?;
    let mut progress = Progress::new("bytes", interrupt.clone(), args.quiet);
    let salvaged = Db::salvage(&args.dir, &scratch.0, options.clone(), |done, total| {
        progress.expect(Some(total));
        progress.set(done);
        if progress.interrupted() {
            return Err(Error::new(ErrorKind::Closed, "stopped; nothing was written"));
        }
        Ok(())
    })?;
    progress.finish();
    let summary = rebuild(&scratch.0, &args.out, &options, interrupt, args.quiet);
    // A partial store would look complete.
    let summary = summary.inspect_err(|_| _ = std::fs::remove_dir_all(&args.out))?;
    report(&salvaged, &summary)
}

/// A scratch directory; dropping it removes the directory.
struct Scratch(PathBuf);

impl Scratch {
    fn beside(out: &Path) -> Result<Self, Failure> {
        let mut name = out.components().as_path().as_os_str().to_owned();
        name.push(".salvage");
        let path = PathBuf::from(name);
        if path.exists() {
            let text = "is needed for a while and exists already: remove it first";
            return Err(Failure::usage(format!("{} {text}", path.display())));
        }
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rebuild(
    from: &Path,
    out: &Path,
    options: &Options,
    interrupt: Interrupt,
    quiet: bool,
) -> Result<RebuildSummary, Failure> {
    let source = Db::open(from, Options { read_only: true, ..options.clone() })?;
    let target = Db::open(out, options.clone())?;
    let mut progress = Progress::new("keys", interrupt, quiet);
    let mut sink = StoreSink::new(WritableStore::Own(target.clone()));
    let mut summary = RebuildSummary::default();
    for number in 0..options.databases {
        let db = source.select(number)?;
        let range = KeyRange { cache_fill: CacheFill::Skip, ..KeyRange::default() };
        for entry in db.iter(range)? {
            let entry = entry?;
            let stop = || progress.interrupted();
            let found = match entry.kind {
                Type::String => copy_string(&db, &mut sink, &entry.key, &mut summary),
                kind => copy_members(&db, &mut sink, &entry.key, kind, &stop),
            };
            if stop() {
                return Err(Failure::new("stopped; nothing was written"));
            }
            record_losses(&db, &entry.key, entry.kind, found, &mut summary)?;
            progress.advance(1);
        }
    }
    progress.finish();
    target.close()?;
    Ok(summary)
}

/// Records a key that lost members. A failure to write ends the repair.
fn record_losses(
    db: &Db,
    key: &[u8],
    kind: Type,
    found: Result<u64, Failure>,
    summary: &mut RebuildSummary,
) -> Result<(), Failure> {
    let shown = format!("database {}, key \"{}\"", db.database(), key.escape_ascii());
    let found = match found {
        Ok(found) => found,
        Err(failure) if failure.is_damage() => {
            summary.incomplete.push(format!("{shown}: {failure}"));
            return Ok(());
        }
        Err(failure) => return Err(failure),
    };
    summary.keys += u64::from(found > 0);
    summary.members += found;
    let size = match kind {
        Type::String => 1,
        Type::Hash => db.hlen(key)?,
        Type::List => db.llen(key)?,
        Type::Set => db.scard(key)?,
        Type::ZSet => db.zcard(key)?,
    };
    let size = u64::try_from(size).unwrap_or(0);
    if found < size {
        summary.incomplete.push(format!("{shown}: {} of {size} members lost", size - found));
    }
    Ok(())
}

/// Copies what is left of a string; returns 1, or 0 if it has expired.
fn copy_string(
    db: &Db,
    sink: &mut StoreSink,
    key: &[u8],
    summary: &mut RebuildSummary,
) -> Result<u64, Failure> {
    let Some((value, lost)) = db.salvaged_string(key)? else { return Ok(1) };
    if lost > 0 {
        let (database, shown) = (db.database(), key.escape_ascii());
        let text = format!(
            "database {database}, key \"{shown}\": {lost} chunks lost, zeros are in their place"
        );
        summary.incomplete.push(text);
    }
    put(db, sink, key, (true, true), Body::whole_string(value)).map(|()| 1)
}

fn put(
    db: &Db,
    sink: &mut StoreSink,
    key: &[u8],
    (first, last): (bool, bool),
    body: Body,
) -> Result<(), Failure> {
    let expire_ms = u64::try_from(db.pexpiretime(key)?).unwrap_or(0);
    let key = bytes::Bytes::copy_from_slice(key);
    sink.put(&Chunk { database: db.database(), key, expire_ms, first, last, body })
}

/// Returns some members of a key at each call, and none at the end.
type MemberParts<'a> = Box<dyn FnMut() -> Result<Vec<Member>, Failure> + 'a>;

/// Copies the existing members until `stop` returns true; returns their number.
fn copy_members(
    db: &Db,
    sink: &mut StoreSink,
    key: &[u8],
    kind: Type,
    stop: &dyn Fn() -> bool,
) -> Result<u64, Failure> {
    let mut parts: MemberParts<'_> = match kind {
        Type::List => elements(db, key)?,
        _ => {
            let range = MemberRange { cache_fill: CacheFill::Skip, ..MemberRange::default() };
            let mut members = db.members(key, range)?;
            Box::new(move || Ok(members.next_chunk(CHUNK_MEMBERS, CHUNK_BYTES)?))
        }
    };
    let mut found = 0;
    loop {
        let members = parts()?;
        let last = members.is_empty();
        let mut body = Body::empty(kind);
        members.into_iter().for_each(|member| body.push(member));
        let count = body.len() as u64;
        if found > 0 || count > 0 {
            put(db, sink, key, (found == 0, last), body)?;
        }
        found += count;
        if last || stop() {
            return Ok(found);
        }
    }
}

/// The elements of a list, read one by one where some are missing.
fn elements<'a>(db: &'a Db, key: &'a [u8]) -> Result<MemberParts<'a>, Failure> {
    let length = db.llen(key)?;
    let mut next = 0;
    Ok(Box::new(move || {
        let mut found = Vec::new();
        while found.is_empty() && next < length {
            let until = (next + CHUNK_MEMBERS as i64).min(length);
            match db.lrange(key, next, until - 1) {
                Ok(elements) => found.extend(elements.into_iter().map(element)),
                Err(_) => {
                    let each = (next..until).filter_map(|at| db.lindex(key, at).ok().flatten());
                    found.extend(each.map(element));
                }
            }
            next = until;
        }
        Ok(found)
    }))
}

fn element(element: bytes::Bytes) -> Member {
    Member::Element { index: 0, element }
}

fn report(salvaged: &Salvaged, summary: &RebuildSummary) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "read {} tables ({} blocks) and {} records of the log",
        salvaged.tables, salvaged.blocks, salvaged.log_records
    )?;
    writeln!(out, "wrote {} keys with {} values and members", summary.keys, summary.members)?;
    for loss in &salvaged.losses {
        writeln!(out, "lost: {}", describe(loss))?;
    }
    for line in &summary.incomplete {
        writeln!(out, "incomplete: {line}")?;
    }
    if salvaged.losses.is_empty() && summary.incomplete.is_empty() {
        writeln!(out, "nothing was lost")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "{} places could not be read; keys there may be missing, or have an older value",
        salvaged.losses.len()
    )?;
    Ok(ExitCode::FAILURE)
}

fn describe(loss: &Loss) -> String {
    let mut text = format!("{}", loss.file.display());
    if loss.bytes > 0 {
        text.push_str(&format!(" at {}, {} bytes", loss.offset, loss.bytes));
    }
    let (after, before) = loss.user_keys();
    let quoted =
        |key: &Option<Vec<u8>>| key.as_ref().map(|key| format!("\"{}\"", key.escape_ascii()));
    match (quoted(&after), quoted(&before)) {
        (Some(after), Some(before)) => text.push_str(&format!(", keys from {after} to {before}")),
        (Some(after), None) => text.push_str(&format!(", keys from {after} on")),
        (None, Some(before)) => text.push_str(&format!(", keys up to {before}")),
        (None, None) => {}
    }
    format!("{text}: {}", loss.detail)
}
