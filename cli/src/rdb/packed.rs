//! Small collections that Redis packs into one string: listpack, ziplist, intset, zipmap.
//!
//! Elements are read one by one. A packed string may expand to many times its size, because an
//! element takes only a byte or two in it.

use bytes::Bytes;

/// Reads bytes from the front.
#[derive(Debug)]
struct ByteReader(Bytes);

impl ByteReader {
    fn take(&mut self, count: usize) -> Option<Bytes> {
        (count <= self.0.len()).then(|| self.0.split_to(count))
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.as_ref().try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn i24(&mut self) -> Option<i64> {
        let [a, b, c] = self.array()?;
        // The sign is in the top byte: an arithmetic shift extends it.
        Some(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8))
    }
}

fn number(number: i64) -> Bytes {
    Bytes::from(number.to_string())
}

/// The encoding of a packed collection.
#[derive(Clone, Copy, Debug)]
pub(super) enum PackedEncoding {
    /// `total u32 | count u16 | element* | ff`; each element is followed by its length, backwards.
    Listpack,
    /// `bytes u32 | tail u32 | count u16 | element* | ff`; each begins with the length of the one
    /// before.
    Ziplist,
    /// `width u32 | count u32 | number*`.
    Intset,
    /// `count u8 | (length, field, length, unused u8, value, unused bytes)* | ff`, of version 2.4.
    Zipmap,
}

/// The next item of a packed collection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextElement {
    Element(Bytes),
    End,
    /// The bytes do not follow the encoding.
    Wrong,
}

/// A packed collection that may be partly read.
#[derive(Debug)]
pub(super) struct PackedCollection {
    front: ByteReader,
    form: PackedEncoding,
    /// The width of an intset's numbers.
    width: u32,
    /// Whether the next element of a zipmap is a value.
    at_value: bool,
}

impl PackedCollection {
    /// Parses the header; `None` if it does not fit the bytes.
    pub(super) fn new(blob: Bytes, form: PackedEncoding) -> Option<Self> {
        let whole = blob.len();
        let mut front = ByteReader(blob);
        let mut width = 0;
        match form {
            PackedEncoding::Listpack => {
                let total = u32::from_le_bytes(front.array()?);
                front.take(2)?;
                (total as usize == whole).then_some(())?;
            }
            PackedEncoding::Ziplist => _ = front.take(10)?,
            PackedEncoding::Intset => {
                width = u32::from_le_bytes(front.array()?);
                let count = u32::from_le_bytes(front.array()?);
                let bytes = (count as usize).checked_mul(width as usize)?;
                (matches!(width, 2 | 4 | 8) && front.0.len() == bytes).then_some(())?;
            }
            PackedEncoding::Zipmap => _ = front.byte()?,
        }
        Some(Self { front, form, width, at_value: false })
    }

    pub(super) fn next(&mut self) -> NextElement {
        match self.step() {
            Some(Some(element)) => NextElement::Element(element),
            Some(None) if self.front.0.is_empty() => NextElement::End,
            _ => NextElement::Wrong,
        }
    }

    /// The next element; `Some(None)` where the collection should end.
    fn step(&mut self) -> Option<Option<Bytes>> {
        match self.form {
            PackedEncoding::Listpack => self.listpack(),
            PackedEncoding::Ziplist => self.ziplist(),
            PackedEncoding::Intset => self.intset(),
            PackedEncoding::Zipmap => self.zipmap(),
        }
    }

    fn listpack(&mut self) -> Option<Option<Bytes>> {
        let front = &mut self.front;
        let before = front.0.len();
        let first = front.byte()?;
        if first == 0xff {
            return Some(None);
        }
        let element = listpack_element(first, front)?;
        let size = before - front.0.len();
        front.take(match size {
            0..=127 => 1,
            128..=16_383 => 2,
            16_384..=2_097_151 => 3,
            2_097_152..=268_435_455 => 4,
            _ => 5,
        })?;
        Some(Some(element))
    }

    fn ziplist(&mut self) -> Option<Option<Bytes>> {
        let front = &mut self.front;
        match front.byte()? {
            0xff => return Some(None),
            0xfe => _ = front.take(4)?,
            _ => {}
        }
        let first = front.byte()?;
        Some(Some(match first {
            0..=0x3f => front.take(first.into())?,
            0x40..=0x7f => {
                let length = u16::from(first & 0x3f) << 8 | u16::from(front.byte()?);
                front.take(length.into())?
            }
            0x80 => {
                let length = u32::from_be_bytes(front.array()?);
                front.take(length as usize)?
            }
            0xc0 => number(i16::from_le_bytes(front.array()?).into()),
            0xd0 => number(i32::from_le_bytes(front.array()?).into()),
            0xe0 => number(i64::from_le_bytes(front.array()?)),
            0xf0 => number(front.i24()?),
            0xfe => number(i8::from_le_bytes(front.array()?).into()),
            0xf1..=0xfd => number(i64::from(first & 0x0f) - 1),
            _ => return None,
        }))
    }

    fn intset(&mut self) -> Option<Option<Bytes>> {
        let front = &mut self.front;
        if front.0.is_empty() {
            return Some(None);
        }
        Some(Some(number(match self.width {
            2 => i16::from_le_bytes(front.array()?).into(),
            4 => i32::from_le_bytes(front.array()?).into(),
            _ => i64::from_le_bytes(front.array()?),
        })))
    }

    fn zipmap(&mut self) -> Option<Option<Bytes>> {
        let front = &mut self.front;
        let is_value = self.at_value;
        self.at_value = !is_value;
        let length = match front.byte()? {
            short @ 0..=253 => usize::from(short),
            254 => u32::from_le_bytes(front.array()?) as usize,
            255 if is_value => return None,
            255 => return Some(None),
        };
        let unused = if is_value { front.byte()? } else { 0 };
        let element = front.take(length)?;
        front.take(unused.into())?;
        Some(Some(element))
    }
}

fn listpack_element(first: u8, front: &mut ByteReader) -> Option<Bytes> {
    let low = |bits: u8| u16::from(first & bits) << 8;
    Some(match first {
        0..=0x7f => number(first.into()),
        0x80..=0xbf => front.take(usize::from(first & 0x3f))?,
        0xc0..=0xdf => {
            let value = i64::from(low(0x1f) | u16::from(front.byte()?));
            number(if value >= 1 << 12 { value - (1 << 13) } else { value })
        }
        0xe0..=0xef => {
            let length = low(0x0f) | u16::from(front.byte()?);
            front.take(length.into())?
        }
        0xf0 => {
            let length = u32::from_le_bytes(front.array()?);
            front.take(length as usize)?
        }
        0xf1 => number(i16::from_le_bytes(front.array()?).into()),
        0xf2 => number(front.i24()?),
        0xf3 => number(i32::from_le_bytes(front.array()?).into()),
        0xf4 => number(i64::from_le_bytes(front.array()?)),
        _ => return None,
    })
}
