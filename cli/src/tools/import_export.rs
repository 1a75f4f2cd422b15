//! `lsmkv import` and `lsmkv export`: keys from Redis servers and their dump files, and keys to
//! Redis servers.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lsmkv::Address;

use crate::failure::{Failure, Outcome};
use crate::rdb::RdbSource;
use crate::store::{ReadOnlyStoreArgs, StoreArgs};
use crate::tools::input_file::open_input;
use crate::transfer::{
    Copied, Interrupt, Progress, RedisSink, RedisSource, ResumeFile, ResumePoint, Sink, Source,
    StoreSink, StoreSource, copy, now_ms,
};

/// Arguments of `import`.
#[derive(Args, Debug)]
#[group(id = "origin", required = true, args = ["from", "rdb"])]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// A Redis server or cluster: redis://[[user]:password@]host[:port][/db], rediss:// for TLS,
    /// unix:///socket[?db=N], redis-cluster://host,host
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// A dump file of Redis (RDB)
    #[arg(long, value_name = "FILE")]
    rdb: Option<PathBuf>,
    /// File for the position of the import [default: DIR.import]
    #[arg(long, value_name = "FILE", requires = "from")]
    state: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    store: ReadOnlyStoreArgs,
    /// A Redis server or cluster: redis://[[user]:password@]host[:port][/db], rediss:// for TLS,
    /// unix:///socket[?db=N], redis-cluster://host,host
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only this database; may be given several times
    #[arg(long = "db", value_name = "N")]
    databases: Vec<u32>,
    /// Only keys with this prefix
    #[arg(long)]
    prefix: Option<String>,
    /// File for the position of the export [default: DIR.export]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

impl ExportArgs {
    /// The arguments that select a part of the store. A copy of another part cannot resume this
    /// one.
    fn selection(&self) -> String {
        let databases = self.databases.iter().map(|number| format!(" --db {number}"));
        databases.chain(self.prefix.iter().map(|prefix| format!(" --prefix {prefix}"))).collect()
    }
}

/// Reads the address of a server or a cluster.
fn parse_address(text: &str) -> Result<Address, Failure> {
    Address::parse(text).map_err(|error| Failure::usage(error.to_string()))
}

/// Copies and saves the position from time to time; removes the file at the end.
fn copy_resumably(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    state: &ResumeFile,
    quiet: bool,
) -> Result<Copied, Failure> {
    let mut progress = Progress::new("keys", Interrupt::catch(), quiet);
    let copied = copy(source, sink, &mut progress, &mut |position| state.save(position));
    match copied {
        Ok(copied) => {
            state.remove()?;
            Ok(copied)
        }
        Err(failure) => {
            let file = state.path().display();
            Err(failure.and(&format!("the same command goes on ({file} says where)")))
        }
    }
}

fn print_summary(copied: Copied, skipped: impl IntoIterator<Item = (String, u64)>) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} keys, {} values and members", copied.keys, copied.members)?;
    for (what, count) in skipped {
        writeln!(out, "skipped: {count} {what}")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn import(args: &ImportArgs) -> Outcome {
    match (&args.from, &args.rdb) {
        (Some(url), _) => import_from_server(args, url),
        (None, Some(path)) => import_from_file(args, path),
        (None, None) => Err(Failure::usage("import needs --from or --rdb")),
    }
}

/// Opens the store after the source: if the source cannot be read, no store is created.
fn into_store(
    args: &StoreArgs,
    bring: impl FnOnce(&mut StoreSink) -> Result<Copied, Failure>,
) -> Result<Copied, Failure> {
    let store = args.open()?;
    let copied = bring(&mut StoreSink::new(store.clone()));
    store.close()?;
    copied
}

const STARTED_ANEW: &str = "the server was started anew";

/// Tells why a copy does not resume.
fn warn_copied_again(why: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stderr(), "lsmkv: {why}: everything is copied from the beginning")?)
}

fn import_from_server(args: &ImportArgs, url: &str) -> Outcome {
    let address = parse_address(url)?;
    let state =
        ResumeFile::new(&args.store.dir, "import", &address.to_string(), args.state.as_deref());
    let mut position = state.load()?;
    if position.is_some() && !args.store.dir.exists() {
        warn_copied_again("the store is a new one")?;
        position = None;
    }
    let options = args.store.options.to_options()?;
    let mut source = RedisSource::new(&address, &options, position.as_ref(), &Interrupt::catch())?;
    if position.is_some_and(|position| position.run_id != source.run_id()) {
        warn_copied_again(STARTED_ANEW)?;
    }
    let copied =
        into_store(&args.store, |sink| copy_resumably(&mut source, sink, &state, args.quiet))?;
    let skipped = source.skipped();
    print_summary(copied, (skipped > 0).then(|| ("keys of other types".to_owned(), skipped)))
}

fn import_from_file(args: &ImportArgs, path: &Path) -> Outcome {
    let failed = |failure: &Failure| Failure::new(format!("{}: {failure}", path.display()));
    let interrupt = Interrupt::catch();
    let input = open_input(Some(path), &interrupt)?;
    let mut source = RdbSource::new(input, now_ms()).map_err(|it| failed(&it))?;
    let copied = into_store(&args.store, |sink| {
        let mut progress = Progress::new("keys", interrupt, args.quiet);
        let copied = copy(&mut source, sink, &mut progress, &mut |_| Ok(()));
        copied.map_err(|failure| failed(&failure))
    })?;
    let skipped = source.skipped().iter().map(|(what, count)| ((*what).to_owned(), *count));
    print_summary(copied, skipped)
}

pub(crate) fn export(args: &ExportArgs) -> Outcome {
    let address = parse_address(&args.to)?;
    let db = args.store.open_to_read()?;
    let dir = &args.store.store.dir;
    let copy = format!("{}{}", address, args.selection());
    let state = ResumeFile::new(dir, "export", &copy, args.state.as_deref());
    let options = args.store.store.options.to_options()?;
    let mut sink = RedisSink::new(&address, &options, &Interrupt::catch())?;
    let begin = starting_point(state.load()?, &mut sink)?;
    // Saved before the first command, so that the next copy knows this connection.
    state.save(&begin)?;
    let prefix = args.prefix.as_ref().map(|prefix| prefix.clone().into_bytes());
    let mut source = StoreSource::new(&db, &args.databases, prefix, Some(&begin));
    let copied = copy_resumably(&mut source, &mut sink, &state, args.quiet)?;
    print_summary(copied, [])
}

/// The start of an export: the position of an earlier one, after its connection is closed.
fn starting_point(
    earlier: Option<ResumePoint>,
    sink: &mut RedisSink,
) -> Result<ResumePoint, Failure> {
    let earlier = match earlier {
        Some(earlier) if sink.run_id().is_empty() => {
            if earlier.position.is_some() {
                warn_copied_again("nothing tells whether this is the same run of the server")?;
            }
            ResumePoint::default()
        }
        Some(earlier) if earlier.run_id == sink.run_id() => {
            close_earlier(earlier.connection, sink)?;
            earlier
        }
        // Its connection ended with that run.
        Some(earlier) if earlier.position.is_some() => {
            warn_copied_again(STARTED_ANEW)?;
            ResumePoint::default()
        }
        _ => ResumePoint::default(),
    };
    Ok(ResumePoint { run_id: sink.run_id().to_owned(), connection: sink.connection(), ..earlier })
}

fn close_earlier(connection: Option<i64>, sink: &mut RedisSink) -> Result<(), Failure> {
    let interrupt = Interrupt::catch();
    let ended = connection.map_or(Ok(false), |number| sink.close_other(number, &interrupt))?;
    if !ended {
        let text = "the server does not end the connection of the export before this one: commands \
                    from it may still arrive, and mix with those of this one";
        writeln!(std::io::stderr(), "lsmkv: {text}")?;
    }
    Ok(())
}
