//! Small collections that Redis keeps packed in one string: listpack, ziplist, intset, zipmap.
//!
//! All give their elements in order; `None` means that the bytes do not follow the form.

use bytes::Bytes;

/// Reads bytes from the front.
struct Front<'a>(&'a [u8]);

impl<'a> Front<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn i24(&mut self) -> Option<i64> {
        let [a, b, c] = self.array()?;
        // The sign is in the top byte: shifted down again it fills the upper bits.
        Some(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8))
    }
}

fn number(number: i64) -> Bytes {
    Bytes::from(number.to_string())
}

/// `total u32 | count u16 | element* | ff`; each element is followed by its length, backwards.
pub(super) fn listpack(blob: &[u8]) -> Option<Vec<Bytes>> {
    let mut front = Front(blob);
    let total = u32::from_le_bytes(front.array()?);
    front.take(2)?;
    if total as usize != blob.len() {
        return None;
    }
    let mut elements = Vec::new();
    loop {
        let before = front.0.len();
        let first = front.byte()?;
        if first == 0xff {
            return front.0.is_empty().then_some(elements);
        }
        elements.push(listpack_element(first, &mut front)?);
        let size = before - front.0.len();
        front.take(match size {
            0..=127 => 1,
            128..=16_383 => 2,
            16_384..=2_097_151 => 3,
            2_097_152..=268_435_455 => 4,
            _ => 5,
        })?;
    }
}

fn listpack_element(first: u8, front: &mut Front<'_>) -> Option<Bytes> {
    let low = |bits: u8| u16::from(first & bits) << 8;
    Some(match first {
        0..=0x7f => number(first.into()),
        0x80..=0xbf => Bytes::copy_from_slice(front.take(usize::from(first & 0x3f))?),
        0xc0..=0xdf => {
            let value = i64::from(low(0x1f) | u16::from(front.byte()?));
            number(if value >= 1 << 12 { value - (1 << 13) } else { value })
        }
        0xe0..=0xef => {
            let length = low(0x0f) | u16::from(front.byte()?);
            Bytes::copy_from_slice(front.take(length.into())?)
        }
        0xf0 => {
            let length = u32::from_le_bytes(front.array()?);
            Bytes::copy_from_slice(front.take(length as usize)?)
        }
        0xf1 => number(i16::from_le_bytes(front.array()?).into()),
        0xf2 => number(front.i24()?),
        0xf3 => number(i32::from_le_bytes(front.array()?).into()),
        0xf4 => number(i64::from_le_bytes(front.array()?)),
        _ => return None,
    })
}

/// `bytes u32 | tail u32 | count u16 | element* | ff`; each begins with the length of the one before.
pub(super) fn ziplist(blob: &[u8]) -> Option<Vec<Bytes>> {
    let mut front = Front(blob);
    front.take(10)?;
    let mut elements = Vec::new();
    loop {
        match front.byte()? {
            0xff => return front.0.is_empty().then_some(elements),
            0xfe => _ = front.take(4)?,
            _ => {}
        }
        let first = front.byte()?;
        elements.push(match first {
            0..=0x3f => Bytes::copy_from_slice(front.take(first.into())?),
            0x40..=0x7f => {
                let length = u16::from(first & 0x3f) << 8 | u16::from(front.byte()?);
                Bytes::copy_from_slice(front.take(length.into())?)
            }
            0x80 => {
                let length = u32::from_be_bytes(front.array()?);
                Bytes::copy_from_slice(front.take(length as usize)?)
            }
            0xc0 => number(i16::from_le_bytes(front.array()?).into()),
            0xd0 => number(i32::from_le_bytes(front.array()?).into()),
            0xe0 => number(i64::from_le_bytes(front.array()?)),
            0xf0 => number(front.i24()?),
            0xfe => number(i8::from_le_bytes(front.array()?).into()),
            0xf1..=0xfd => number(i64::from(first & 0x0f) - 1),
            _ => return None,
        });
    }
}

/// `width u32 | count u32 | number*`.
pub(super) fn intset(blob: &[u8]) -> Option<Vec<Bytes>> {
    let mut front = Front(blob);
    let (width, count) = (u32::from_le_bytes(front.array()?), u32::from_le_bytes(front.array()?));
    let expected = (count as usize).checked_mul(width as usize)?;
    if front.0.len() != expected {
        return None;
    }
    (0..count)
        .map(|_| match width {
            2 => front.array().map(|it| number(i16::from_le_bytes(it).into())),
            4 => front.array().map(|it| number(i32::from_le_bytes(it).into())),
            8 => front.array().map(|it| number(i64::from_le_bytes(it))),
            _ => None,
        })
        .collect()
}

/// `count u8 | (length, field, length, unused u8, value, unused bytes)* | ff`, of version 2.4.
pub(super) fn zipmap(blob: &[u8]) -> Option<Vec<Bytes>> {
    fn length(front: &mut Front<'_>) -> Option<usize> {
        match front.byte()? {
            short @ 0..=253 => Some(short.into()),
            254 => front.array().map(|it| u32::from_le_bytes(it) as usize),
            255 => None,
        }
    }
    let mut front = Front(blob);
    front.byte()?;
    let mut elements = Vec::new();
    loop {
        if front.0 == [0xff] {
            return Some(elements);
        }
        let field = length(&mut front)?;
        elements.push(Bytes::copy_from_slice(front.take(field)?));
        let value = length(&mut front)?;
        let unused = front.byte()?;
        elements.push(Bytes::copy_from_slice(front.take(value)?));
        front.take(unused.into())?;
    }
}
