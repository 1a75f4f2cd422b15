//! The shell's own commands, which start with a dot.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use super::help;
use super::interpreter::{Interpreter, LineOutcome};
use super::render::Style;
use crate::failure::Failure;
use crate::tools::atomic_file::AtomicFile;
use crate::tools::dump::{Format, sink};
use crate::tools::{check, inspect, tree};
use crate::transfer::{Progress, StoreSource, copy, load_commands};

/// A row of the table of dot commands.
pub(super) struct DotCommand {
    pub(super) name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) doc: &'static str,
    /// The minimum and maximum number of arguments.
    counts: (usize, usize),
    /// Whether it reads the store, which must exist then.
    reads: bool,
    run: Run,
}

/// Runs a command with the words after its name.
type Run = fn(&mut Interpreter, &[&str], &mut dyn Write) -> Result<LineOutcome, Failure>;

impl DotCommand {
    const fn new(
        name: &'static str,
        arguments: &'static str,
        doc: &'static str,
        counts: (usize, usize),
        run: Run,
    ) -> Self {
        Self { name, arguments, doc, counts, reads: false, run }
    }

    const fn reading(self) -> Self {
        Self { reads: true, ..self }
    }
}

/// Every dot command, by name.
pub(super) const DOT_COMMANDS: &[DotCommand] = &[
    DotCommand::new(
        ".check",
        "",
        "Reads everything and compares checksums, keys and members.",
        (0, 0),
        Interpreter::check,
    )
    .reading(),
    DotCommand::new(
        ".dump",
        "[FILE]",
        "All keys as commands, or as JSON lines if FILE ends in .json.",
        (0, 1),
        Interpreter::dump,
    )
    .reading(),
    DotCommand::new(
        ".help",
        "[COMMAND]",
        "What the shell or a command does.",
        (0, 1),
        Interpreter::help,
    ),
    DotCommand::new(".levels", "", "The tree of tables.", (0, 0), Interpreter::levels).reading(),
    DotCommand::new(
        ".lua",
        "FILE [KEY ...] [, [ARGUMENT ...]]",
        "Runs the Lua script in a file; a comma stands between its keys and its arguments.",
        (1, usize::MAX),
        |_, arguments, out| usage(".lua", arguments, out),
    ),
    DotCommand::new(".mode", "plain|json|raw", "How replies are shown.", (1, 1), Interpreter::mode),
    DotCommand::new(".quit", "", "Leaves the shell.", (0, 0), Interpreter::quit),
    DotCommand::new(".read", "FILE", "Runs the commands in a file.", (1, 1), Interpreter::read),
    DotCommand::new(".stats", "", "What the store holds and has done.", (0, 0), Interpreter::stats)
        .reading(),
    DotCommand::new(".tables", "", "Every table file.", (0, 0), Interpreter::tables).reading(),
];

/// Other names of commands.
const ALIASES: [(&str, &str); 1] = [(".exit", ".quit")];

fn find(name: &str) -> Option<&'static DotCommand> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| *name);
    DOT_COMMANDS.iter().find(|command| command.name == name)
}

fn usage(name: &str, arguments: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
    let words = [&[name], arguments].concat().join(" ");
    writeln!(out, "{words}: use .help for the shell's commands")?;
    Ok(LineOutcome::Failed)
}

impl Interpreter {
    /// Runs a dot command given as words.
    pub(super) fn dot(
        &mut self,
        words: &[Vec<u8>],
        out: &mut dyn Write,
    ) -> Result<LineOutcome, Failure> {
        let texts: Vec<String> =
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let Some((name, arguments)) = texts.split_first() else {
            return Ok(LineOutcome::Succeeded);
        };
        let fits = |command: &&DotCommand| {
            let (min, max) = command.counts;
            (min..=max).contains(&arguments.len())
        };
        if *name == ".lua" && !arguments.is_empty() {
            return self.lua(words.get(1..).unwrap_or_default(), out);
        }
        match find(name).filter(fits) {
            Some(command) if command.reads && self.absence().is_some() => {
                writeln!(out, "{}", self.absence().unwrap_or_default())?;
                Ok(LineOutcome::Failed)
            }
            Some(command) => (command.run)(self, arguments, out),
            None => usage(name, arguments, out),
        }
    }

    fn quit(&mut self, _: &[&str], _: &mut dyn Write) -> Result<LineOutcome, Failure> {
        Ok(LineOutcome::Quit)
    }

    fn help(&mut self, arguments: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        write!(out, "{}", help::text(arguments.first().copied()))?;
        Ok(LineOutcome::Succeeded)
    }

    fn stats(&mut self, _: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        write!(out, "{}", inspect::stats_text(self.db()?)?)?;
        Ok(LineOutcome::Succeeded)
    }

    fn levels(&mut self, _: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        let colours = matches!(self.style, Style::Readable { colours: true });
        write!(out, "{}", tree::render(self.db()?, colours)?)?;
        Ok(LineOutcome::Succeeded)
    }

    fn mode(&mut self, arguments: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        self.style = match arguments {
            ["plain"] => Style::Readable { colours: false },
            ["json"] => Style::Json,
            ["raw"] => Style::Raw,
            _ => return usage(".mode", arguments, out),
        };
        Ok(LineOutcome::Succeeded)
    }

    fn dump(&mut self, arguments: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        match arguments.first() {
            None => self.dump_to(Format::Resp, out)?,
            Some(path) => {
                let json = path.ends_with(".json") || path.ends_with(".jsonl");
                let format = if json { Format::Json } else { Format::Resp };
                let file = AtomicFile::create(Path::new(path))?;
                self.dump_to(format, BufWriter::new(file.writer()))?;
                file.finish()?;
            }
        }
        Ok(LineOutcome::Succeeded)
    }

    fn tables(&mut self, _: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        for table in self.db()?.tables()? {
            let name = table.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (tree, level, bytes) = (table.tree, table.level, inspect::human_bytes(table.bytes));
            let (entries, deletes) = (table.entries, table.tombstones);
            writeln!(
                out,
                "{name}  {tree:5} L{level} {bytes:>10} {entries} entries, {deletes} deletes"
            )?;
        }
        Ok(LineOutcome::Succeeded)
    }

    fn check(&mut self, _: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        self.interrupt.clear();
        let problems = check::problems(self.db()?, &self.interrupt, false)?;
        for problem in &problems {
            writeln!(out, "{problem}")?;
        }
        if problems.is_empty() {
            writeln!(out, "no problems")?;
        }
        Ok(if problems.is_empty() { LineOutcome::Succeeded } else { LineOutcome::Failed })
    }

    fn dump_to(&mut self, format: Format, out: impl Write) -> Result<(), Failure> {
        self.interrupt.clear();
        let mut progress = Progress::new("keys", self.interrupt.clone(), true);
        let mut source = StoreSource::new(self.db()?, &[], None, None);
        let mut sink = sink(out, format, false);
        copy(&mut source, &mut *sink, &mut progress, &mut |_| Ok(()))?;
        Ok(())
    }

    /// Runs EVAL with the script in a file. Keys and arguments may be any bytes.
    fn lua(&mut self, words: &[Vec<u8>], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        let Some((file, rest)) = words.split_first() else { return usage(".lua", &[], out) };
        let path = String::from_utf8_lossy(file);
        let script = match std::fs::read(&*path) {
            Ok(script) => script,
            Err(error) => {
                writeln!(out, "{path}: {error}")?;
                return Ok(LineOutcome::Failed);
            }
        };
        let comma = rest.iter().position(|word| word == b",");
        let keys = rest.get(..comma.unwrap_or(rest.len())).unwrap_or_default();
        let arguments = comma.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
        let count = keys.len().to_string().into_bytes();
        let call: Vec<Vec<u8>> = [b"EVAL".to_vec(), script, count]
            .into_iter()
            .chain(keys.iter().chain(arguments).cloned())
            .collect();
        self.command(&call, out)
    }

    fn read(&mut self, arguments: &[&str], out: &mut dyn Write) -> Result<LineOutcome, Failure> {
        let path = arguments.first().copied().unwrap_or_default();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                writeln!(out, "{path}: {error}")?;
                return Ok(LineOutcome::Failed);
            }
        };
        self.create_store()?;
        let mut progress = Progress::new("commands", self.interrupt.clone(), true);
        let mut session = self.another_session()?;
        let loaded =
            load_commands(BufReader::new(file), |argv| session.command(argv), &mut progress)?;
        writeln!(out, "{} commands, {} errors", loaded.commands, loaded.errors)?;
        if let Some(error) = loaded.first_error {
            writeln!(out, "the first error: {error}")?;
            return Ok(LineOutcome::Failed);
        }
        Ok(LineOutcome::Succeeded)
    }
}
