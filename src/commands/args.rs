//! Arguments, read one after the other, with the reference's error texts.

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

/// What C's `%s` shows of these bytes.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Bytes as they stand in an error text.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_zero(bytes)).into_owned()
}

/// The arguments of a command that have not been read yet, without its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Args<'a> {
    rest: &'a [&'a [u8]],
}

impl<'a> Args<'a> {
    /// `rest` does not hold the command's name.
    pub(crate) fn new(rest: &'a [&'a [u8]]) -> Self {
        Self { rest }
    }

    /// How many are left.
    pub(crate) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next one; a syntax error if there is none.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let (first, rest) = self.rest.split_first().ok_or_else(syntax_error)?;
        self.rest = rest;
        Ok(first)
    }

    /// The next one as an integer.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        parse_integer(self.bytes()?)
    }

    /// The next one as a count whose sign has a meaning, so that it can be negated.
    pub(crate) fn signed_count(&mut self) -> Result<i64> {
        match self.integer()? {
            i64::MIN => {
                let bounds = format!(", value must between {} and {}", -i64::MAX, i64::MAX);
                Err(out_of_range(&bounds))
            }
            count => Ok(count),
        }
    }

    /// The next one without taking it.
    pub(crate) fn peek(&self) -> Option<&'a [u8]> {
        self.rest.first().copied()
    }

    /// Takes the next one if it is this word, in any case.
    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        if found {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        found
    }

    /// Whether this word, in any case, is anywhere among those that are left.
    pub(crate) fn contains_word(&self, word: &str) -> bool {
        self.rest.iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The next `n`; a syntax error if there are fewer.
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [&'a [u8]]> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or_else(syntax_error)?;
        self.rest = rest;
        Ok(taken)
    }

    /// All that are left.
    pub(crate) fn all(&mut self) -> &'a [&'a [u8]] {
        std::mem::take(&mut self.rest)
    }

    /// All that are left, as pairs, for the command `name`; one that is alone is an error.
    pub(crate) fn pairs_of(&mut self, name: &str) -> Result<Vec<(&'a [u8], &'a [u8])>> {
        let pair = |pair: &[&'a [u8]]| match pair {
            [a, b] => Some((*a, *b)),
            _ => None,
        };
        self.all().chunks(2).map(pair).collect::<Option<_>>().ok_or_else(|| wrong_number(name))
    }

    /// A syntax error if something is left.
    pub(crate) fn end(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(syntax_error()) }
    }
}
