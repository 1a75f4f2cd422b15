//! Packed commands: several in one block of bytes, each `[u32le argc]([u32le len][bytes])*`.
//!
//! A length causes no allocation before the bytes it claims are known to exist.

use crate::error::{Error, ErrorKind, Result};

/// Reads packed commands from a block, in order.
pub(super) struct Packed<'a> {
    rest: &'a [u8],
    size: usize,
}

impl<'a> Packed<'a> {
    pub(super) fn new(block: &'a [u8]) -> Self {
        Self { rest: block, size: block.len() }
    }

    /// Checks that the whole block is commands. The error names the offset of the fault.
    pub(super) fn check(mut self, longest: usize) -> Result<usize> {
        let mut commands = 0;
        while self.next(longest, |_| ())? {
            commands += 1;
        }
        Ok(commands)
    }

    /// Passes the arguments of the next command to `take`. Returns false at the end.
    pub(super) fn next(&mut self, longest: usize, mut take: impl FnMut(&'a [u8])) -> Result<bool> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let argc = self.number()?;
        if argc == 0 {
            return Err(self.malformed("a command without a name"));
        }
        for _ in 0..argc {
            let len = self.number()? as usize;
            if len > longest {
                let message = format!("an argument has {len} bytes, the store accepts {longest}");
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            let (argument, rest) =
                self.rest.split_at_checked(len).ok_or_else(|| self.malformed("it ends early"))?;
            self.rest = rest;
            take(argument);
        }
        Ok(true)
    }

    fn number(&mut self) -> Result<u32> {
        let (bytes, rest) =
            self.rest.split_first_chunk().ok_or_else(|| self.malformed("it ends early"))?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    fn malformed(&self, what: &str) -> Error {
        let at = self.size - self.rest.len();
        let message = format!("packed commands are malformed at byte {at}: {what}");
        Error::new(ErrorKind::Invalid, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(commands: &[&[&[u8]]]) -> Vec<u8> {
        let mut block = Vec::new();
        for command in commands {
            block.extend((command.len() as u32).to_le_bytes());
            for argument in *command {
                block.extend((argument.len() as u32).to_le_bytes());
                block.extend(*argument);
            }
        }
        block
    }

    #[test]
    fn commands_come_back_as_they_were_packed() {
        let block = pack(&[&[b"SET", b"k", b""], &[b"GET", b"\0\xff"]]);
        let mut packed = Packed::new(&block);
        let mut argv = Vec::new();
        assert!(packed.next(100, |arg| argv.push(arg)).unwrap());
        assert_eq!(argv, [&b"SET"[..], b"k", b""]);
        argv.clear();
        assert!(packed.next(100, |arg| argv.push(arg)).unwrap());
        assert_eq!(argv, [&b"GET"[..], b"\0\xff"]);
        assert!(!packed.next(100, |_| ()).unwrap());
        assert_eq!(Packed::new(&block).check(100).unwrap(), 2);
        assert_eq!(Packed::new(&[]).check(100).unwrap(), 0);
    }

    #[test]
    fn every_cut_and_every_absurd_number_is_refused() {
        let block = pack(&[&[b"SET", b"key", b"value"]]);
        for cut in 1..block.len() {
            let error = Packed::new(&block[..cut]).check(100).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{cut}");
        }
        let mut huge = block.clone();
        huge[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Packed::new(&huge).check(100).unwrap_err().kind(), ErrorKind::Invalid);
        let mut long = block.clone();
        long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Packed::new(&long).check(100).unwrap_err().kind(), ErrorKind::TooLarge);
        assert!(Packed::new(&[0; 4]).check(100).is_err());
    }
}
