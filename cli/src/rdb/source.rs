//! The keys of a dump, one chunk after the other.

use std::collections::BTreeMap;
use std::io::Read;

use super::input::Input;
use super::members::OpenKey;
use crate::failure::Failure;
use crate::transfer::{Chunk, Source};

/// The newest supported version.
const NEWEST: u32 = 12;

/// Reads keys from a dump file.
pub(crate) struct RdbSource<R> {
    pub(super) input: Input<R>,
    version: u32,
    pub(super) database: u32,
    pub(super) open: Option<OpenKey>,
    done: bool,
    /// The number of skipped items, by description.
    skipped: BTreeMap<&'static str, u64>,
    expected: u64,
    /// The time of the import in milliseconds since 1970; it decides which fields have expired.
    pub(super) now_ms: u64,
}

impl<R: Read> RdbSource<R> {
    /// Reads the header of a dump; `now_ms` is the time of the import in milliseconds since 1970.
    pub(crate) fn new(input: R, now_ms: u64) -> Result<Self, Failure> {
        let mut input = Input::new(input);
        let no_dump = || Failure::new("this is no dump of Redis");
        let head: [u8; 9] = input.array().map_err(|_| no_dump())?;
        let version = head.strip_prefix(b"REDIS").and_then(|it| std::str::from_utf8(it).ok());
        let version = version.and_then(|text| text.parse().ok()).ok_or_else(no_dump)?;
        if version > NEWEST {
            return Err(Failure::new(format!(
                "the dump has version {version}; versions up to {NEWEST} can be read"
            )));
        }
        let skipped = BTreeMap::new();
        let (database, open, done, expected) = (0, None, false, 0);
        Ok(Self { input, version, database, open, done, skipped, expected, now_ms })
    }

    /// The number of skipped items, by description.
    pub(crate) fn skipped(&self) -> &BTreeMap<&'static str, u64> {
        &self.skipped
    }

    pub(super) fn skip(&mut self, what: &'static str) {
        *self.skipped.entry(what).or_default() += 1;
    }

    /// Reads up to the next key that can be imported.
    fn next_key(&mut self) -> Result<Option<Chunk>, Failure> {
        let mut expire_ms = 0;
        loop {
            match self.input.byte()? {
                0xff => {
                    self.finish()?;
                    return Ok(None);
                }
                0xfe => {
                    let number = self.input.length()?;
                    let number = u32::try_from(number);
                    self.database =
                        number.map_err(|_| self.input.failure("a database's number"))?;
                }
                0xfd => expire_ms = u64::from(self.input.u32_le()?) * 1000,
                0xfc => expire_ms = self.input.u64_le()?,
                0xfb => {
                    self.expected = self.expected.saturating_add(self.input.length()?);
                    self.input.length()?;
                }
                0xfa => {
                    self.input.string()?;
                    self.input.string()?;
                }
                0xf9 => _ = self.input.byte()?,
                0xf8 => _ = self.input.length()?,
                0xf7 => {
                    self.input.skip_lengths(3)?;
                    self.input.skip_module()?;
                    self.skip("modules' own data");
                }
                0xf5 => {
                    self.input.string()?;
                    self.skip("functions");
                }
                0xf4 => self.input.skip_lengths(3)?,
                kind => {
                    let key = self.input.string()?;
                    if let Some(chunk) = self.begin(kind, key, std::mem::take(&mut expire_ms))? {
                        return Ok(Some(chunk));
                    }
                }
            }
        }
    }

    /// Verifies the checksum at the end, if there is one.
    fn finish(&mut self) -> Result<(), Failure> {
        self.done = true;
        if self.version < 5 {
            return Ok(());
        }
        let found = self.input.checksum();
        let expected = self.input.u64_le()?;
        if expected != 0 && expected != found {
            return Err(Failure::new(format!(
                "the dump's checksum is {expected:016x}, its bytes give {found:016x}: it is damaged"
            )));
        }
        Ok(())
    }
}

impl<R: Read> Source for RdbSource<R> {
    fn next(&mut self) -> Result<Option<Chunk>, Failure> {
        if self.done {
            return Ok(None);
        }
        if self.open.is_some() {
            return self.next_part();
        }
        self.next_key()
    }

    fn expected(&self) -> Option<u64> {
        // The dump tells the number of keys after it selects the first database.
        (self.expected > 0).then_some(self.expected)
    }
}
