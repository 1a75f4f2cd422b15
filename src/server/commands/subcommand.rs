//! Dispatch of subcommands by tables.

use super::Call;

/// A row of a subcommand table.
pub(super) struct Subcommand {
    name: &'static str,
    /// The minimum and maximum number of arguments, including both names.
    min: usize,
    max: usize,
    run: fn(&mut Call<'_, '_>),
}

impl Subcommand {
    /// A subcommand with `min` to `max` arguments.
    pub(super) const fn new(
        name: &'static str,
        min: usize,
        max: usize,
        run: fn(&mut Call<'_, '_>),
    ) -> Self {
        Self { name, min, max, run }
    }

    /// A subcommand with at least `min` arguments.
    pub(super) const fn at_least(
        name: &'static str,
        min: usize,
        run: fn(&mut Call<'_, '_>),
    ) -> Self {
        Self::new(name, min, usize::MAX, run)
    }
}

impl Call<'_, '_> {
    /// Runs the subcommand that the second word names.
    pub(super) fn subcommand(&mut self, table: &[Subcommand]) {
        let word = self.word(1);
        match table.iter().find(|row| row.name == word) {
            Some(row) if (row.min..=row.max).contains(&self.argv.len()) => (row.run)(self),
            Some(_) => self.wrong_number(),
            None => self.unknown_subcommand(),
        }
    }

    /// Runs the subcommand that the second word names; DEBUG treats a wrong number of arguments as
    /// an unknown subcommand.
    pub(super) fn subcommand_or_unknown(&mut self, table: &[Subcommand]) {
        let (word, count) = (self.word(1), self.argv.len());
        let fits = |row: &&Subcommand| row.name == word && (row.min..=row.max).contains(&count);
        match table.iter().find(fits) {
            Some(row) => (row.run)(self),
            None => self.unknown_subcommand(),
        }
    }

    /// Replies that the command does not have this subcommand.
    pub(super) fn unknown_subcommand(&mut self) {
        let name = String::from_utf8_lossy(self.arg(0)).to_ascii_uppercase();
        let word = String::from_utf8_lossy(self.arg(1)).into_owned();
        self.out.error(&format!("ERR unknown subcommand '{word}'. Try {name} HELP."));
    }

    /// Replies that the subcommand has a wrong number of arguments.
    pub(super) fn wrong_number(&mut self) {
        let lower = |at| String::from_utf8_lossy(self.arg(at)).to_ascii_lowercase();
        let name = format!("{}|{}", lower(0), lower(1));
        self.out.error(&format!("ERR wrong number of arguments for '{name}' command"));
    }
}
