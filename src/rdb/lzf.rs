//! LZF decompression.
//!
//! A control byte below 32 precedes that number plus one literal bytes. Otherwise its upper three
//! bits are a length; the value 7 means that the next byte is added to it. The lower five bits and
//! the next byte are a distance back, from where length + 2 bytes are repeated.

/// Decompresses `packed`; `None` unless it holds exactly `length` bytes.
pub fn unpack(packed: &[u8], length: u64) -> Option<Vec<u8>> {
    // Three bytes expand to at most 264. A greater claim is false and allocates nothing.
    let length =
        usize::try_from(length).ok().filter(|it| *it <= packed.len().saturating_mul(90))?;
    let mut out: Vec<u8> = Vec::with_capacity(length);
    let mut rest = packed.iter();
    while let Some(&control) = rest.next() {
        let control = usize::from(control);
        if control < 32 {
            let (literal, after) = rest.as_slice().split_at_checked(control + 1)?;
            out.extend_from_slice(literal);
            rest = after.iter();
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += usize::from(*rest.next()?);
            }
            let distance = (control & 0x1f) << 8 | usize::from(*rest.next()?);
            let start = out.len().checked_sub(distance + 1)?;
            for at in start..start + count + 2 {
                out.push(*out.get(at)?);
            }
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn literals_and_repeats_of_all_lengths() {
        assert_eq!(unpack(b"\x02abc", 3).unwrap(), b"abc");
        // Length 1 + 2 from one byte back; length 7 + 3 + 2.
        assert_eq!(unpack(b"\x00a\x20\x00", 4).unwrap(), b"aaaa");
        assert_eq!(unpack(b"\x01ab\xe0\x03\x01", 14).unwrap(), b"ababababababab");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (packed, length) in [
            (&b"\x02ab"[..], 3),
            (b"\x00a\x20", 4),
            (b"\x00a\x20\x01", 4),
            (b"\x00a", 2),
            (b"\x02abc", 2),
            (b"", u64::MAX),
        ] {
            assert_eq!(unpack(packed, length), None, "{packed:?}");
        }
    }
}
