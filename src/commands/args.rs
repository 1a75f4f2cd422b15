//! Reads the arguments of a command in order. Errors have the texts of Redis.

use crate::error::{Error, ErrorKind, Result};
use crate::types::number::{out_of_range, parse_integer};

/// The error for arguments that do not follow the grammar.
pub(crate) fn syntax_error() -> Error {
    Error::new(ErrorKind::Syntax, "ERR syntax error")
}

/// The error for too few or too many arguments.
pub(crate) fn wrong_number(name: &str) -> Error {
    let name = name.to_ascii_lowercase();
    let message = format!("ERR wrong number of arguments for '{name}' command");
    Error::new(ErrorKind::Syntax, message)
}

/// The bytes up to the first NUL, which is what C's `%s` prints.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Bytes as they appear in an error text.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_zero(bytes)).into_owned()
}

/// The arguments of a command that have not been read yet, without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args<'a> {
    rest: &'a [&'a [u8]],
}

impl<'a> Args<'a> {
    /// Creates a reader of `rest`, which does not include the command's name.
    pub(crate) fn new(rest: &'a [&'a [u8]]) -> Self {
        Self { rest }
    }

    /// The number of arguments left.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether no argument is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes the next argument. Without one it is a syntax error.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let (first, rest) = self.rest.split_first().ok_or_else(syntax_error)?;
        self.rest = rest;
        Ok(first)
    }

    /// Takes the next argument as an integer.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        parse_integer(self.bytes()?)
    }

    /// Takes the next argument as a count that can be negated, since its sign has a meaning.
    pub(crate) fn signed_count(&mut self) -> Result<i64> {
        match self.integer()? {
            i64::MIN => {
                let bounds = format!(", value must between {} and {}", -i64::MAX, i64::MAX);
                Err(out_of_range(&bounds))
            }
            count => Ok(count),
        }
    }

    /// The next argument, without taking it.
    pub(crate) fn peek(&self) -> Option<&'a [u8]> {
        self.rest.first().copied()
    }

    /// Takes the next argument if it is this word, in any case.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        if found {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        found
    }

    /// Takes the next argument, a word in any case, and returns its meaning. Any other word is a
    /// syntax error.
    pub(crate) fn choice<T: Copy>(&mut self, words: &[(&str, T)]) -> Result<T> {
        let given = self.bytes()?;
        let chosen = words.iter().find(|(word, _)| given.eq_ignore_ascii_case(word.as_bytes()));
        chosen.map(|(_, meaning)| *meaning).ok_or_else(syntax_error)
    }

    /// Whether any argument left is this word, in any case.
    pub(crate) fn contains_word(&self, word: &str) -> bool {
        self.rest.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Takes the next `n` arguments. Fewer are a syntax error.
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [&'a [u8]]> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or_else(syntax_error)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes all arguments left.
    pub(crate) fn all(&mut self) -> &'a [&'a [u8]] {
        std::mem::take(&mut self.rest)
    }

    /// Takes all arguments left as pairs. An odd number is an error that names the command `name`.
    pub(crate) fn pairs_of(&mut self, name: &str) -> Result<Vec<(&'a [u8], &'a [u8])>> {
        let pair = |pair: &[&'a [u8]]| match pair {
            [a, b] => Some((*a, *b)),
            _ => None,
        };
        self.all().chunks(2).map(pair).collect::<Option<_>>().ok_or_else(|| wrong_number(name))
    }

    /// Fails with a syntax error if an argument is left.
    pub(crate) fn end(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(syntax_error()) }
    }
}
