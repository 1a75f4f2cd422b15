//! The line editor: history, completion of commands and keys, hints for missing arguments.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use lsmkv::types::KeyRange;
use lsmkv::{CacheFill, Db, KeyPositions, commands, session_commands};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::dot_commands::DOT_COMMANDS;
use super::help;
use super::interpreter::{Interpreter, LineOutcome, is_incomplete};
use super::render::{Style, quoted};
use crate::failure::{Failure, Outcome};
use crate::transfer::Interrupt;
use lsmkv::resp::split_inline;

/// The maximum number of keys that a completion offers.
const MAX_KEYS: usize = 100;

/// Answers the editor's questions while the user types a line.
pub(super) struct LineHelper {
    /// The selected database; it follows SELECT.
    /// The store whose keys are completed, if it is of this process.
    pub(super) db: Option<Db>,
    pub(super) colours: bool,
}

impl Helper for LineHelper {}

/// A hint behind the cursor. The editor never inserts it.
pub(super) struct ArgumentHint(String);

impl Hint for ArgumentHint {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for LineHelper {
    type Hint = ArgumentHint;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<ArgumentHint> {
        if position < line.len() {
            return None;
        }
        hint(line).map(ArgumentHint)
    }
}

/// The arguments that a line still lacks.
fn hint(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let missing = help::missing_arguments(name, words.count())?;
    let blank = if line.ends_with(char::is_whitespace) { "" } else { " " };
    (!missing.is_empty()).then(|| format!("{blank}{missing}"))
}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..position).unwrap_or(line);
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let typed = before.get(start..).unwrap_or_default();
        let words: Vec<&str> = before.get(..start).unwrap_or_default().split_whitespace().collect();
        let candidates = match words.as_slice() {
            [] => command_names(typed),
            ["help" | "HELP" | ".help"] => command_names(typed),
            [name, ..] if takes_key(name, words.len()) => self.keys(typed),
            _ => Vec::new(),
        };
        Ok((start, candidates))
    }
}

fn plain(text: String) -> Pair {
    Pair { display: text.clone(), replacement: text }
}

fn command_names(typed: &str) -> Vec<Pair> {
    if typed.starts_with('.') {
        let names =
            DOT_COMMANDS.iter().map(|command| command.name).filter(|name| name.starts_with(typed));
        return names.map(|name| plain(format!("{name} "))).collect();
    }
    let upper = typed.to_ascii_uppercase();
    let lower = typed.chars().next().is_some_and(|c| c.is_ascii_lowercase());
    let own = session_commands().map(|info| info.name);
    let mut names: Vec<&str> = commands()
        .map(|info| info.name())
        .chain(own)
        .filter(|name| name.starts_with(&upper))
        .collect();
    names.sort_unstable();
    let cased = |name: &str| if lower { name.to_ascii_lowercase() } else { name.to_owned() };
    names.into_iter().map(|name| plain(format!("{} ", cased(name)))).collect()
}

/// Whether argument `at` of a command may be a key.
fn takes_key(name: &str, at: usize) -> bool {
    let upper = name.to_ascii_uppercase();
    if let Some(info) = session_commands().find(|info| info.name == upper) {
        return matches!(info.key_positions, KeyPositions::Range { first, .. } if at >= first);
    }
    let Some(info) = commands().find(|info| info.name() == upper) else { return false };
    // Enough words that every position that can hold a key does.
    let words = vec![&b"1"[..]; at + 2];
    let marked: Vec<&[u8]> =
        words.iter().enumerate().map(|(n, word)| if n == at { &b"?"[..] } else { word }).collect();
    info.keys(&marked).contains(&&b"?"[..])
}

impl LineHelper {
    fn keys(&self, typed: &str) -> Vec<Pair> {
        let prefix = split_inline(typed.trim_matches('"').as_bytes());
        let prefix = prefix.and_then(|words| words.into_iter().next()).unwrap_or_default();
        let range =
            KeyRange { prefix: Some(prefix), cache_fill: CacheFill::Skip, ..KeyRange::default() };
        let keys = self.db.as_ref().and_then(|db| db.iter(range).ok());
        let Some(keys) = keys else { return Vec::new() };
        let names = keys.flatten().take(MAX_KEYS).map(|entry| match word(&entry.key) {
            Some(word) => plain(word),
            None => plain(quoted(&entry.key)),
        });
        names.collect()
    }
}

/// The key as the user can type it without quotes.
fn word(key: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?;
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '\'' | '\\');
    (!text.is_empty() && !text.contains(odd)).then(|| text.to_owned())
}

impl Validator for LineHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_incomplete(context.input().as_bytes()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Highlighter for LineHelper {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colours { Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")) } else { Cow::Borrowed(hint) }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        if self.colours {
            Cow::Owned(format!("\x1b[1;34m{prompt}\x1b[0m"))
        } else {
            Cow::Borrowed(prompt)
        }
    }
}

fn history_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("LSMKV_HISTORY") {
        return (!path.is_empty()).then(|| PathBuf::from(path));
    }
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".lsmkv_history"))
}

/// The prompt: `store> `, `store[2]> ` or `store(TX)> `.
fn prompt(name: &str, interpreter: &Interpreter) -> String {
    let database = match interpreter.database() {
        0 => String::new(),
        number => format!("[{number}]"),
    };
    let multi = if interpreter.in_multi() { "(TX)" } else { "" };
    format!("{name}{database}{multi}> ")
}

/// Reads lines from the terminal until the user leaves.
pub(super) fn interact(interpreter: &mut Interpreter, dir: &str) -> Outcome {
    let failed = |error: ReadlineError| Failure::new(format!("the terminal: {error}"));
    let config =
        Config::builder().completion_type(CompletionType::List).history_ignore_space(true).build();
    let mut editor: Editor<LineHelper, DefaultHistory> =
        Editor::with_config(config).map_err(failed)?;
    let history = history_file();
    if let Some(path) = &history {
        // There is no history at the first start.
        let _ = editor.load_history(path);
    }
    interpreter.interrupt = Interrupt::catch();
    let name = dir.rsplit('/').find(|part| !part.is_empty()).unwrap_or(dir).to_owned();
    writeln!(std::io::stdout(), "lsmkv {}. Type .help for help.", env!("CARGO_PKG_VERSION"))?;
    if let Some(absence) = interpreter.absence() {
        writeln!(std::io::stdout(), "{absence}")?;
    }
    loop {
        let colours = matches!(interpreter.style, Style::Readable { colours: true });
        editor.set_helper(Some(LineHelper { db: interpreter.local_db().cloned(), colours }));
        match editor.readline(prompt(&name, interpreter).as_str()) {
            Ok(line) => {
                // A line that the history rejects still runs.
                let _ = editor.add_history_entry(line.as_str());
                // Forgets a Ctrl-C in an earlier line.
                interpreter.interrupt.clear();
                let mut out = std::io::stdout().lock();
                match interpreter.line(line.as_bytes(), &mut out) {
                    Ok(LineOutcome::Quit) => break,
                    Ok(_) => {}
                    Err(failure) => writeln!(out, "{failure}")?,
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmkv::Options;

    #[test]
    fn hints_name_the_arguments_that_are_missing() {
        assert_eq!(hint("GETRANGE").as_deref(), Some(" key start end"));
        assert_eq!(hint("getrange k ").as_deref(), Some("start end"));
        assert_eq!(hint("GETRANGE k 0 1"), None);
        assert_eq!(hint("HSET h f ").as_deref(), Some("value [field value …]"));
        assert_eq!(hint("HSET h f v").as_deref(), Some(" [field value …]"));
        assert_eq!(hint("LMPOP 2 a ").as_deref(), Some("[key …] <LEFT | RIGHT> [COUNT count]"));
        assert_eq!(hint("BITOP AND").as_deref(), Some(" destination key [key …]"));
        assert_eq!(hint(".read ").as_deref(), Some("FILE"));
        assert_eq!(hint("nothing "), None);
        assert_eq!(hint(""), None);
    }

    #[test]
    fn commands_are_completed_in_the_case_they_are_typed() {
        let texts = |typed| {
            command_names(typed).into_iter().map(|pair| pair.replacement).collect::<Vec<_>>()
        };
        assert_eq!(texts("getr"), ["getrange "]);
        assert_eq!(texts("MUL"), ["MULTI "]);
        assert_eq!(texts(".le"), [".levels "]);
    }

    #[test]
    fn keys_are_offered_only_where_a_key_belongs() {
        assert!(takes_key("GET", 1) && takes_key("mset", 3) && takes_key("DEL", 4));
        assert!(!takes_key("GET", 2) && !takes_key("MSET", 2) && !takes_key("PING", 1));
        assert!(takes_key("WATCH", 1) && takes_key("watch", 3) && !takes_key("SELECT", 1));
        let db = Db::open(":memory:", Options::default()).unwrap();
        for key in ["user:1", "user:2", "user 3", "other"] {
            db.set(key.as_bytes(), b"v").unwrap();
        }
        let helper = LineHelper { db: Some(db), colours: false };
        let keys: Vec<_> = helper.keys("user").into_iter().map(|pair| pair.replacement).collect();
        assert_eq!(keys, ["\"user 3\"", "user:1", "user:2"]);
    }
}
