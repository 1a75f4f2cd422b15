//! `lsmkv import` and `lsmkv export`: keys from and to Redis servers, keys from their dump files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::rdb::RdbSource;
use crate::store::{InspectArgs, StoreArgs};
use crate::tools::input::begin_to_read;
use crate::transfer::{
    Copied, Interrupt, Progress, RedisSink, RedisSource, RedisUrl, Sink, Source, State, StateFile,
    StoreSink, StoreSource, copy, now_ms,
};

/// Arguments of `import`.
#[derive(Args, Debug)]
#[group(id = "origin", required = true, args = ["from", "rdb"])]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// A Redis server: redis://[[user]:password@]host[:port][/db] or unix:///socket[?db=N]
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// A dump file of Redis (RDB)
    #[arg(long, value_name = "FILE")]
    rdb: Option<PathBuf>,
    /// Where to note how far the import has come [default: DIR.import]
    #[arg(long, value_name = "FILE", requires = "from")]
    state: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    store: InspectArgs,
    /// A Redis server: redis://[[user]:password@]host[:port][/db] or unix:///socket[?db=N]
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only this database; may be given several times
    #[arg(long = "db", value_name = "N")]
    databases: Vec<u32>,
    /// Only keys that begin with this
    #[arg(long)]
    prefix: Option<String>,
    /// Where to note how far the export has come [default: DIR.export]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

impl ExportArgs {
    /// What is taken, if that is not everything: another part does not go on where this one was.
    fn selection(&self) -> String {
        let databases = self.databases.iter().map(|number| format!(" --db {number}"));
        databases.chain(self.prefix.iter().map(|prefix| format!(" --prefix {prefix}"))).collect()
    }
}

/// Copies, noting the progress, and removes the note at the end.
fn resumable(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    state: &StateFile,
    quiet: bool,
) -> Result<Copied, Failure> {
    let mut progress = Progress::new("keys", Interrupt::catch(), quiet);
    let copied = copy(source, sink, &mut progress, &mut |place| state.save(place));
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

fn tell(copied: Copied, skipped: impl IntoIterator<Item = (String, u64)>) -> Outcome {
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

/// Opens the store for a source that is open already: where there is nothing to bring, no store is
/// made.
fn into_store(
    args: &StoreArgs,
    bring: impl FnOnce(&mut StoreSink) -> Result<Copied, Failure>,
) -> Result<Copied, Failure> {
    let db = args.open()?;
    let copied = bring(&mut StoreSink::new(&db));
    db.close()?;
    copied
}

const STARTED_ANEW: &str = "the server was started anew";

/// Why a copy that had come some way does not go on there.
fn tell_again(why: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stderr(), "lsmkv: {why}: everything is copied from the beginning")?)
}

fn import_from_server(args: &ImportArgs, url: &str) -> Outcome {
    let url = RedisUrl::parse(url)?;
    let state = StateFile::new(&args.store.dir, "import", &url.shown(), args.state.as_deref());
    let mut place = state.load()?;
    if place.is_some() && !args.store.dir.exists() {
        tell_again("the store is a new one")?;
        place = None;
    }
    let mut source = RedisSource::new(&url, place.as_ref(), &Interrupt::catch())?;
    if place.is_some_and(|place| place.life != source.life()) {
        tell_again(STARTED_ANEW)?;
    }
    let copied = into_store(&args.store, |sink| resumable(&mut source, sink, &state, args.quiet))?;
    let skipped = source.skipped();
    tell(copied, (skipped > 0).then(|| ("keys of other types".to_owned(), skipped)))
}

fn import_from_file(args: &ImportArgs, path: &Path) -> Outcome {
    let failed = |failure: &Failure| Failure::new(format!("{}: {failure}", path.display()));
    let interrupt = Interrupt::catch();
    let input = begin_to_read(Some(path), &interrupt)?;
    let mut source = RdbSource::new(input, now_ms()).map_err(|it| failed(&it))?;
    let copied = into_store(&args.store, |sink| {
        let mut progress = Progress::new("keys", interrupt, args.quiet);
        let copied = copy(&mut source, sink, &mut progress, &mut |_| Ok(()));
        copied.map_err(|failure| failed(&failure))
    })?;
    let skipped = source.skipped().iter().map(|(what, count)| ((*what).to_owned(), *count));
    tell(copied, skipped)
}

pub(crate) fn export(args: &ExportArgs) -> Outcome {
    let url = RedisUrl::parse(&args.to)?;
    let db = args.store.open_to_read()?;
    let dir = &args.store.store.dir;
    let copy = format!("{}{}", url.shown(), args.selection());
    let state = StateFile::new(dir, "export", &copy, args.state.as_deref());
    let mut sink = RedisSink::new(&url, &Interrupt::catch())?;
    let begin = beginning(state.load()?, &mut sink)?;
    // Before the first command, so that the one that goes on knows of this connection.
    state.save(&begin)?;
    let prefix = args.prefix.as_ref().map(|prefix| prefix.clone().into_bytes());
    let mut source = StoreSource::new(&db, &args.databases, prefix, Some(&begin));
    let copied = resumable(&mut source, &mut sink, &state, args.quiet)?;
    tell(copied, [])
}

/// Where an export begins: where an earlier one had come, of which nothing comes after this.
fn beginning(earlier: Option<State>, sink: &mut RedisSink) -> Result<State, Failure> {
    let earlier = match earlier {
        Some(earlier) if earlier.life == sink.life() => {
            end(earlier.connection, sink)?;
            earlier
        }
        // Its connection has ended with that life.
        Some(earlier) if earlier.place.is_some() => {
            tell_again(STARTED_ANEW)?;
            State::default()
        }
        _ => State::default(),
    };
    Ok(State { life: sink.life().to_owned(), connection: sink.connection(), ..earlier })
}

fn end(connection: Option<i64>, sink: &mut RedisSink) -> Result<(), Failure> {
    let interrupt = Interrupt::catch();
    let ended = connection.map_or(Ok(false), |number| sink.end(number, &interrupt))?;
    if !ended {
        let text = "the server does not end the connection of the export before this one: commands \
                    from it may still arrive, and mix with those of this one";
        writeln!(std::io::stderr(), "lsmkv: {text}")?;
    }
    Ok(())
}
