//! The bytes of a dump: lengths, strings and numbers, with the offset and the checksum.

use std::io::Read;

use bytes::Bytes;
use lsmkv::rdb::{checksum, lzf};

use crate::failure::Failure;

/// The maximum length of a string in Redis.
const MAX_STRING: u64 = 512 << 20;

/// A length, or the special encoding of a string.
pub(super) enum Length {
    Plain(u64),
    Special(u8),
}

/// A reader of dump files.
pub(super) struct Input<R> {
    input: R,
    offset: u64,
    crc: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, offset: 0, crc: 0 }
    }

    /// A failure at the current offset.
    pub(super) fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("the dump is damaged before offset {}: {what}", self.offset))
    }

    /// The checksum of the bytes read so far.
    pub(super) fn checksum(&self) -> u64 {
        self.crc
    }

    pub(super) fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Failure> {
        if length > MAX_STRING {
            return Err(self.failure("a length is beyond what Redis stores"));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut bytes)?;
        self.offset += read as u64;
        self.crc = checksum::update(self.crc, &bytes);
        if (read as u64) < length {
            return Err(self.failure("it ends here"));
        }
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.failure("it ends here"),
            _ => error.into(),
        })?;
        self.offset += N as u64;
        self.crc = checksum::update(self.crc, &bytes);
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Failure> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u32_le(&mut self) -> Result<u32, Failure> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64_le(&mut self) -> Result<u64, Failure> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn length_or_special(&mut self) -> Result<Length, Failure> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(Length::Plain(match first >> 6 {
            0 => low.into(),
            1 => u64::from(low) << 8 | u64::from(self.byte()?),
            2 if first == 0x80 => self.array().map(u32::from_be_bytes)?.into(),
            2 if first == 0x81 => self.array().map(u64::from_be_bytes)?,
            3 => return Ok(Length::Special(low)),
            _ => return Err(self.failure("a length is not valid")),
        }))
    }

    pub(super) fn length(&mut self) -> Result<u64, Failure> {
        match self.length_or_special()? {
            Length::Plain(length) => Ok(length),
            Length::Special(_) => Err(self.failure("a string stands where a length should be")),
        }
    }

    pub(super) fn string(&mut self) -> Result<Bytes, Failure> {
        let number = |number: i64| Bytes::from(number.to_string());
        Ok(match self.length_or_special()? {
            Length::Plain(length) => self.bytes(length)?.into(),
            Length::Special(0) => number(self.array().map(i8::from_le_bytes)?.into()),
            Length::Special(1) => number(self.array().map(i16::from_le_bytes)?.into()),
            Length::Special(2) => number(self.array().map(i32::from_le_bytes)?.into()),
            Length::Special(3) => {
                let (packed, length) = (self.length()?, self.length()?);
                let packed = self.bytes(packed)?;
                let unpacked = lzf::unpack(&packed, length.min(MAX_STRING + 1));
                unpacked.ok_or_else(|| self.failure("a compressed string does not unpack"))?.into()
            }
            Length::Special(_) => return Err(self.failure("a string has an unknown form")),
        })
    }

    /// Reads a score as versions before 4.0 write it.
    pub(super) fn text_score(&mut self) -> Result<f64, Failure> {
        let score = match self.byte()? {
            253 => None,
            254 => Some(f64::INFINITY),
            255 => Some(f64::NEG_INFINITY),
            length => {
                let text = self.bytes(length.into())?;
                std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok())
            }
        };
        score
            .filter(|score: &f64| !score.is_nan())
            .ok_or_else(|| self.failure("a score is no number"))
    }

    pub(super) fn binary_score(&mut self) -> Result<f64, Failure> {
        let score = self.array().map(f64::from_le_bytes)?;
        if score.is_nan() { Err(self.failure("a score is no number")) } else { Ok(score) }
    }
}
