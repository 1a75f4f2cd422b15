//! Skips the parts of a dump that lsmkv does not support.

use std::io::Read;

use super::input::Input;
use crate::failure::Failure;

impl<R: Read> Input<R> {
    /// Skips a stream of type `kind`: 15, 19 or 21.
    pub(super) fn skip_stream(&mut self, kind: u8) -> Result<(), Failure> {
        let newer = kind >= 19;
        for _ in 0..self.length()? {
            self.string()?;
            self.string()?;
        }
        // Length and last id; since 7.0 also first id, last deleted id, number of entries ever
        // added.
        self.skip_lengths(if newer { 8 } else { 3 })?;
        for _ in 0..self.length()? {
            self.string()?;
            self.skip_lengths(if newer { 3 } else { 2 })?;
            for _ in 0..self.length()? {
                self.array::<24>()?;
                self.length()?;
            }
            self.skip_consumers(if kind >= 21 { 16 } else { 8 })?;
        }
        Ok(())
    }

    fn skip_consumers(&mut self, time_bytes: u64) -> Result<(), Failure> {
        for _ in 0..self.length()? {
            self.string()?;
            self.bytes(time_bytes)?;
            for _ in 0..self.length()? {
                self.array::<16>()?;
            }
        }
        Ok(())
    }

    pub(super) fn skip_lengths(&mut self, count: usize) -> Result<(), Failure> {
        for _ in 0..count {
            self.length()?;
        }
        Ok(())
    }

    /// Skips the data of a module after its id: a sequence of typed values.
    pub(super) fn skip_module(&mut self) -> Result<(), Failure> {
        loop {
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => _ = self.length()?,
                3 => _ = self.array::<4>()?,
                4 => _ = self.array::<8>()?,
                5 => _ = self.string()?,
                _ => return Err(self.failure("a module's value has an unknown form")),
            }
        }
    }
}
