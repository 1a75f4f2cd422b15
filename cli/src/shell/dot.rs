//! The shell's own commands.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

use super::help;
use super::interpreter::{Done, Interpreter};
use super::render::Style;
use crate::failure::Failure;
use crate::tools::dump::{Format, sink};
use crate::tools::whole_file::WholeFile;
use crate::tools::{check, inspect, tree};
use crate::transfer::{Progress, StoreSource, copy};

/// Their names, with what they do.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    (".check", "", "Reads everything and compares checksums, keys and members."),
    (".dump", "[FILE]", "All keys as commands, or as JSON lines if FILE ends in .json."),
    (".help", "[COMMAND]", "What the shell or a command does."),
    (".levels", "", "The tree of tables."),
    (".mode", "plain|json|raw", "How replies are shown."),
    (".quit", "", "Leaves the shell."),
    (".read", "FILE", "Runs the commands in a file."),
    (".stats", "", "What the store holds and has done."),
    (".tables", "", "Every table file."),
];

impl Interpreter {
    pub(super) fn dot(&mut self, words: &[Vec<u8>], out: &mut impl Write) -> Result<Done, Failure> {
        let texts: Vec<String> =
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let colours = matches!(self.style, Style::Readable { colours: true });
        match texts.as_slice() {
            [".quit" | ".exit"] => return Ok(Done::Quit),
            [".help"] => write!(out, "{}", help::text(None))?,
            [".help", _] => write!(out, "{}", help::text(words.get(1)))?,
            [".stats"] => write!(out, "{}", inspect::stats_text(self.db())?)?,
            [".levels"] => write!(out, "{}", tree::picture(self.db(), colours)?)?,
            [".tables"] => self.list_tables(out)?,
            [".check"] => return self.check(out),
            [".dump"] => self.dump(Format::Resp, &mut *out)?,
            [".dump", path] => {
                let json = path.ends_with(".json") || path.ends_with(".jsonl");
                let format = if json { Format::Json } else { Format::Resp };
                let file = WholeFile::create(path.as_ref())?;
                self.dump(format, BufWriter::new(file.writer()))?;
                file.finish()?;
            }
            [".read", path] => return self.read(path, out),
            [".mode", "plain"] => self.style = Style::Readable { colours: false },
            [".mode", "json"] => self.style = Style::Json,
            [".mode", "raw"] => self.style = Style::Raw,
            _ => {
                writeln!(out, "{}: use .help for the shell's commands", texts.join(" "))?;
                return Ok(Done::Failed);
            }
        }
        Ok(Done::Well)
    }

    fn list_tables(&self, out: &mut impl Write) -> Result<(), Failure> {
        for table in self.db().tables()? {
            let name = table.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (tree, level, bytes) = (table.tree, table.level, inspect::human(table.bytes));
            let (entries, deletes) = (table.entries, table.tombstones);
            writeln!(
                out,
                "{name}  {tree:5} L{level} {bytes:>10} {entries} entries, {deletes} deletes"
            )?;
        }
        Ok(())
    }

    fn check(&mut self, out: &mut impl Write) -> Result<Done, Failure> {
        self.interrupt.clear();
        let problems = check::problems(self.db(), &self.interrupt, false)?;
        for problem in &problems {
            writeln!(out, "{problem}")?;
        }
        if problems.is_empty() {
            writeln!(out, "no problems")?;
        }
        Ok(if problems.is_empty() { Done::Well } else { Done::Failed })
    }

    fn dump(&mut self, format: Format, out: impl Write) -> Result<(), Failure> {
        self.interrupt.clear();
        let mut progress = Progress::new("keys", self.interrupt.clone(), true);
        let mut source = StoreSource::new(self.db(), &[], None, None);
        let mut sink = sink(out, format, false);
        copy(&mut source, &mut *sink, &mut progress, &mut |_| Ok(()))?;
        Ok(())
    }

    fn read(&mut self, path: &str, out: &mut impl Write) -> Result<Done, Failure> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                writeln!(out, "{path}: {error}")?;
                return Ok(Done::Failed);
            }
        };
        let mut progress = Progress::new("commands", self.interrupt.clone(), true);
        let loaded =
            crate::transfer::load_commands(BufReader::new(file), self.db(), &mut progress)?;
        writeln!(out, "{} commands, {} errors", loaded.commands, loaded.errors)?;
        if let Some(error) = loaded.first_error {
            writeln!(out, "the first error: {error}")?;
            return Ok(Done::Failed);
        }
        Ok(Done::Well)
    }
}
