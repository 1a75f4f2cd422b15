//! Builds the words of a command from the checked parameters of a C function.

use std::fmt::Write as _;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::commands::entry::Entry;
use crate::error::Result;
use crate::ffi::flags::{Flags, invalid};

/// The number of words that most commands fit into, on the stack.
const USUAL_WORDS: usize = 12;

/// A short text on the stack, such as a number.
#[derive(Debug, Default)]
pub(super) struct Text(SmallVec<[u8; 24]>);

impl Text {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// A number as text. A double becomes the shortest text that reads back as the same number.
pub(super) fn text(number: impl std::fmt::Display) -> Text {
    let mut text = Text::default();
    // Writing to memory does not fail.
    let _ = write!(text, "{number}");
    text
}

/// A score bound of a range.
pub(super) fn score_bound(score: f64, excluded: bool) -> Bound<f64> {
    if excluded { Bound::Excluded(score) } else { Bound::Included(score) }
}

/// A score bound as a command spells it.
pub(super) fn score_bound_text(score: f64, excluded: bool) -> Text {
    if excluded { text(format_args!("({score}")) } else { text(score) }
}

/// A member bound of a range. Without a member the range is open.
pub(super) fn member_bound(member: Option<&[u8]>, excluded: bool) -> Bound<&[u8]> {
    match member {
        None => Bound::Unbounded,
        Some(member) if excluded => Bound::Excluded(member),
        Some(member) => Bound::Included(member),
    }
}

/// A member bound as a command spells it. Without a member it is the word `open`.
pub(super) fn member_bound_text(member: Option<&[u8]>, excluded: bool, open: &str) -> Text {
    let Some(member) = member else { return text(open) };
    let mut text = Text::default();
    text.0.push(if excluded { b'(' } else { b'[' });
    text.0.extend_from_slice(member);
    text
}

/// Converts a number that must not be negative.
pub(super) fn unsigned(name: &str, number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| invalid(format!("{name} is negative: {number}")))
}

/// Checks that twice the count is an `i64` too.
pub(super) fn signed_count(name: &str, count: i64) -> Result<i64> {
    let fits = count.unsigned_abs() <= (i64::MAX / 2).unsigned_abs();
    if fits { Ok(count) } else { Err(invalid(format!("the {name} {count} is too large"))) }
}

/// A command and its words.
pub(super) struct Argv<'a> {
    words: SmallVec<[Word<'a>; USUAL_WORDS]>,
}

/// One word of a command.
enum Word<'a> {
    /// The caller's bytes.
    Given(&'a [u8]),
    /// A text made for this call.
    Own(Text),
}

impl<'a> Argv<'a> {
    /// Starts with the command's name.
    pub(super) fn new(entry: &'static Entry) -> Self {
        let mut argv = Self { words: SmallVec::new() };
        argv.word(entry.command.name);
        argv
    }

    /// Adds a literal word.
    pub(super) fn word(&mut self, word: &'static str) {
        self.words.push(Word::Given(word.as_bytes()));
    }

    /// Adds the caller's bytes.
    pub(super) fn push(&mut self, bytes: &'a [u8]) {
        self.words.push(Word::Given(bytes));
    }

    /// Adds every one of the caller's byte strings.
    pub(super) fn extend(&mut self, items: &[&'a [u8]]) {
        self.words.extend(items.iter().map(|item| Word::Given(item)));
    }

    /// Adds a text that was made for this call.
    pub(super) fn own(&mut self, text: Text) {
        self.words.push(Word::Own(text));
    }

    /// Adds a count of elements.
    pub(super) fn count(&mut self, number: usize) {
        self.own(text(number));
    }

    /// Adds a word if its flag is set.
    pub(super) fn flag(&mut self, flags: Flags, flag: u32, word: &'static str) {
        if flags.has(flag) {
            self.word(word);
        }
    }

    /// Adds a word and its value, if there is one.
    pub(super) fn option(&mut self, word: &'static str, value: Option<&'a [u8]>) {
        if let Some(value) = value {
            self.word(word);
            self.push(value);
        }
    }

    /// Adds a word and numbers, if there are numbers.
    pub(super) fn numbers_after(&mut self, word: &'static str, numbers: &[f64]) {
        if !numbers.is_empty() {
            self.word(word);
            numbers.iter().for_each(|number| self.own(text(*number)));
        }
    }

    /// Adds every item, each after `word`.
    pub(super) fn each_after(&mut self, word: &'static str, items: &[&'a [u8]]) {
        for item in items {
            self.word(word);
            self.push(item);
        }
    }

    /// Adds every item, each after its score.
    pub(super) fn scored(&mut self, scores: &[f64], items: &[&'a [u8]]) {
        for (score, item) in scores.iter().zip(items) {
            self.own(text(*score));
            self.push(item);
        }
    }

    /// Calls `work` with the words as slices.
    pub(super) fn with_slices<T>(&self, work: impl FnOnce(&[&[u8]]) -> T) -> T {
        let slices: SmallVec<[&[u8]; USUAL_WORDS]> = self
            .words
            .iter()
            .map(|word| match word {
                Word::Given(bytes) => *bytes,
                Word::Own(text) => text.as_bytes(),
            })
            .collect();
        work(&slices)
    }
}
