//! `lsmkv dump DIR` and `lsmkv load DIR`: a store as a portable file.

use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::failure::Outcome;
use crate::store::{ReadOnlyStoreArgs, StoreArgs, WritableStore};
use crate::tools::atomic_file::AtomicFile;
use crate::tools::input_file::open_input;
use crate::transfer::{
    Interrupt, InterruptibleReader, JsonSink, JsonSource, Loaded, Progress, RespSink, Sink,
    StoreSink, StoreSource, copy, load_commands,
};

/// The format of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The commands that create the keys, as a client sends them: for `redis-cli --pipe`
    Resp,
    /// A line of JSON for each key, several for a big collection
    Json,
}

/// Arguments of `dump`.
#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    store: ReadOnlyStoreArgs,
    /// Format of the dump
    #[arg(long, value_enum, default_value = "resp")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this database; may be given several times
    #[arg(long = "db", value_name = "N")]
    databases: Vec<u32>,
    /// Only keys with this prefix
    #[arg(long)]
    prefix: Option<String>,
    /// Delete each key before it is written (resp)
    #[arg(long)]
    replace: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of `load`.
#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Read this file instead of standard input
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Format of the dump; by default its first byte decides
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn dump(args: &DumpArgs) -> Outcome {
    let db = args.store.open_to_read()?;
    let file = args.output.as_deref().map(AtomicFile::create).transpose()?;
    let out: Box<dyn Write + '_> = match &file {
        Some(file) => Box::new(file.writer()),
        None => Box::new(std::io::stdout().lock()),
    };
    let mut progress = Progress::new("keys", Interrupt::catch(), args.quiet);
    let prefix = args.prefix.as_ref().map(|prefix| prefix.clone().into_bytes());
    let mut source = StoreSource::new(&db, &args.databases, prefix, None);
    let mut sink = sink(BufWriter::with_capacity(256 << 10, out), args.format, args.replace);
    copy(&mut source, &mut *sink, &mut progress, &mut |_| Ok(()))?;
    drop(sink);
    file.map_or(Ok(()), AtomicFile::finish)?;
    Ok(ExitCode::SUCCESS)
}

/// The sink that writes a dump in this format.
pub(crate) fn sink<'a>(out: impl Write + 'a, format: Format, replace: bool) -> Box<dyn Sink + 'a> {
    match format {
        Format::Resp => Box::new(RespSink::new(out, replace)),
        Format::Json => Box::new(JsonSink::new(out)),
    }
}

pub(crate) fn load(args: &LoadArgs) -> Outcome {
    let interrupt = Interrupt::catch();
    let input = open_input(args.input.as_deref(), &interrupt)?;
    let format = match args.format {
        Some(format) => format,
        None if input.buffer().first() == Some(&b'{') => Format::Json,
        None => Format::Resp,
    };
    let store = args.store.open()?;
    let loaded = load_into(&store, input, format, interrupt, args.quiet);
    store.close()?;
    loaded
}

fn load_into(
    store: &WritableStore,
    input: BufReader<InterruptibleReader>,
    format: Format,
    interrupt: Interrupt,
    quiet: bool,
) -> Outcome {
    let mut out = std::io::stdout().lock();
    match format {
        Format::Json => {
            let mut progress = Progress::new("keys", interrupt, quiet);
            let (mut source, mut sink) = (JsonSource::new(input), StoreSink::new(store.clone()));
            let copied = copy(&mut source, &mut sink, &mut progress, &mut |_| Ok(()))?;
            writeln!(out, "{} keys", copied.keys)?;
            Ok(ExitCode::SUCCESS)
        }
        Format::Resp => {
            let mut progress = Progress::new("commands", interrupt, quiet);
            let loaded = load_commands(input, store.session(), &mut progress);
            if loaded.is_err() {
                store.sync()?;
            }
            let Loaded { commands, errors, first_error } = loaded?;
            writeln!(out, "{commands} commands, {errors} errors")?;
            if let Some(error) = first_error {
                writeln!(std::io::stderr(), "lsmkv: the first error: {error}")?;
                return Ok(ExitCode::FAILURE);
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
