//! `lsmkv DIR` and `lsmkv ADDRESS`: commands typed by a person, given as arguments, or read from standard input.
//!
//! - `editor`: the line editor with history, completion, hints;
//! - `absent_store`: a store that the first write creates;
//! - `interpreter`: runs a line; `dot_commands`: the shell's own commands;
//! - `help`: help texts from the command table;
//! - `store_session`: where commands run: this process, the holder of a shared store, a server, a
//!   cluster;
//! - `render`: replies as text, JSON or raw bytes.

mod absent_store;
mod dot_commands;
mod editor;
mod help;
mod interpreter;
mod render;
mod store_session;

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lsmkv::{Address, Options};

use crate::failure::{Failure, Outcome};
use crate::store::{OptionArgs, WritableStore, explain_open, has_store, is_absent};

use absent_store::AbsentStore;
use interpreter::{Interpreter, LineOutcome};
pub(crate) use render::Style;
use store_session::StoreSession;

/// Arguments without a subcommand.
#[derive(Args, Debug)]
pub(crate) struct ShellArgs {
    /// Directory of the store, :memory:, or an address: redis://host, rediss://host,
    /// unix:///socket, redis-cluster://host,host
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// One command to run; without it, commands come from the terminal or standard input
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<std::ffi::OsString>,
    /// Number of the database
    #[arg(short = 'n', long = "db", value_name = "N", default_value_t = 0)]
    database: u32,
    /// Print replies as JSON
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Print replies without quotes and numbers
    #[arg(long)]
    raw: bool,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    options: OptionArgs,
}

impl ShellArgs {
    fn style(&self, terminal: bool) -> Style {
        match (self.json, self.raw) {
            (true, _) => Style::Json,
            (_, true) => Style::Raw,
            _ => Style::Readable { colours: terminal && std::env::var_os("NO_COLOR").is_none() },
        }
    }

    /// The address of a server or a cluster, if one is named.
    fn remote_address(&self) -> Option<&str> {
        self.dir.as_deref().and_then(Path::to_str).filter(|path| Address::is_remote(path))
    }

    /// Opens the store. If there is none, the first write creates it.
    fn interpreter(&self, style: Style) -> Result<Interpreter, Failure> {
        let Some(dir) = &self.dir else {
            return Err(Failure::usage("a directory or a subcommand is needed; see lsmkv --help"));
        };
        let mut options = self.options.to_options()?;
        options.read_only |= self.read_only;
        if let Some(address) = self.remote_address() {
            let session = StoreSession::connect(address, self.database, &options)?;
            return Ok(Interpreter::on(session, style));
        }
        let one_command = !self.words.is_empty();
        if one_command {
            // The process ends before the cleaner would run.
            options = Options { ttl_cleaner_interval_s: 0, ..options };
        }
        let may_create = options.create_if_missing && !options.read_only;
        let memory = dir.as_os_str() == ":memory:";
        let first = match memory || (options.error_if_exists && has_store(dir)) {
            true => options.clone(),
            false => {
                Options { create_if_missing: false, error_if_exists: false, ..options.clone() }
            }
        };
        match WritableStore::open(dir, first) {
            Ok(store) => Ok(Interpreter::on(StoreSession::on(store, self.database)?, style)),
            Err(error) if may_create && is_absent(&error, dir) => {
                let absent = AbsentStore::new(dir, options, one_command);
                Interpreter::without_store(absent, self.database, style)
            }
            Err(error) => Err(explain_open(error, dir)),
        }
    }
}

/// Runs the shell.
pub(crate) fn run(args: &ShellArgs) -> Outcome {
    let terminal = std::io::stdout().is_terminal();
    let style = args.style(terminal);
    if let Some(name) = args.words.first() {
        // Checked before the store opens: a mistyped subcommand must not create a store.
        let name = name.to_string_lossy();
        let known = name.eq_ignore_ascii_case("help") || help::find(&name).is_some();
        // A server may know more.
        if !known && args.remote_address().is_none() {
            return Err(Failure::usage(format!("there is no command {name}; see lsmkv --help")));
        }
    }
    let mut interpreter = args.interpreter(style)?;
    let outcome = if !args.words.is_empty() {
        run_command(args, &mut interpreter)
    } else if std::io::stdin().is_terminal() && terminal {
        let name = args.dir.as_deref().map_or_else(String::new, |dir| dir.display().to_string());
        editor::interact(&mut interpreter, &name)
    } else {
        run_lines(&mut interpreter)
    };
    interpreter.close()?;
    outcome
}

fn status(succeeded: bool) -> ExitCode {
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the command given as arguments.
fn run_command(args: &ShellArgs, interpreter: &mut Interpreter) -> Outcome {
    use std::os::unix::ffi::OsStrExt as _;
    let words: Vec<Vec<u8>> = args.words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let mut out = std::io::stdout().lock();
    let done = interpreter.words(&words, &mut out)?;
    out.flush()?;
    Ok(status(done != LineOutcome::Failed))
}

/// Runs the commands from standard input, where a quote may span lines. The exit status tells
/// whether all succeeded.
fn run_lines(interpreter: &mut Interpreter) -> Outcome {
    let (mut input, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut succeeded = true;
    let mut line = Vec::new();
    loop {
        let more = input.read_until(b'\n', &mut line)? > 0;
        if more && interpreter::is_incomplete(&line) {
            continue;
        }
        match interpreter.line(&line, &mut out)? {
            LineOutcome::Quit => break,
            LineOutcome::Failed => succeeded = false,
            LineOutcome::Succeeded => {}
        }
        line.clear();
        if !more {
            break;
        }
    }
    out.flush()?;
    Ok(status(succeeded))
}
