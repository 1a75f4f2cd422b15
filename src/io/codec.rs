//! Encodes and decodes the integers and byte strings of all file formats: little-endian integers,
//! varints, and a reader that never trusts a length it has not checked.

/// Appends a little-endian `u32`.
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a little-endian `u64`.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a varint: seven bits per byte, lowest first, with the top bit set on all bytes but the
/// last.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a signed number as a varint: numbers near zero are short.
pub fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Appends the length of `bytes` as a varint, and then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Number of bytes that [`put_bytes`] appends.
pub fn bytes_len(bytes: &[u8]) -> usize {
    let bits = usize::BITS - (bytes.len() | 1).leading_zeros();
    bits.div_ceil(7) as usize + bytes.len()
}

/// The first key after all that begin with `prefix`; `None` if there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

/// Reads values from the front of a slice. `None` means that the bytes do not hold such a value.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }

    /// Reads the next byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Reads a little-endian `u32`.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*head))
    }

    /// Reads a little-endian `u64`.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*head))
    }

    /// Reads a varint of at most 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        let (&first, rest) = self.rest.split_first()?;
        if first < 0x80 {
            self.rest = rest;
            return Some(u64::from(first));
        }
        self.long_varint()
    }

    /// Reads a signed number that [`put_zigzag`] appended.
    #[inline]
    pub fn zigzag(&mut self) -> Option<i64> {
        let raw = self.varint()?;
        Some((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
    }

    fn long_varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a varint length and that many bytes.
    #[inline]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_length_of_bytes_is_told_before_they_are_written() {
        for len in [0, 1, 127, 128, 129, 16_383, 16_384, 2_097_151, 2_097_152] {
            let (bytes, mut out) = (vec![0; len], Vec::new());
            put_bytes(&mut out, &bytes);
            assert_eq!(bytes_len(&bytes), out.len());
        }
    }

    proptest! {
        #[test]
        fn every_integer_and_string_reads_back(a: u32, b: u64, c: u64, s: Vec<u8>) {
            let mut out = Vec::new();
            put_u32(&mut out, a);
            put_u64(&mut out, b);
            put_varint(&mut out, c);
            put_bytes(&mut out, &s);
            let mut r = Reader::new(&out);
            prop_assert_eq!(r.u32(), Some(a));
            prop_assert_eq!(r.u64(), Some(b));
            prop_assert_eq!(r.varint(), Some(c));
            prop_assert_eq!(r.bytes(), Some(&s[..]));
            prop_assert!(r.is_empty());
        }

        #[test]
        fn arbitrary_bytes_never_panic(s: Vec<u8>) {
            let mut r = Reader::new(&s);
            while r.bytes().is_some() {}
            prop_assert!(r.rest().len() <= s.len());
        }
    }

    #[test]
    fn a_varint_of_more_than_64_bits_is_refused() {
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
        assert_eq!(Reader::new(&[0x80; 3]).varint(), None);
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader::new(&max).varint(), Some(u64::MAX));
    }
}
