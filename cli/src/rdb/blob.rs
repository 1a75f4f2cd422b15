//! Small collections that Redis keeps packed in one string: listpack, ziplist, intset, zipmap.
//!
//! Their elements are given one by one: a packed string may unfold to many times its size, since each
//! element costs more than the byte or two it is packed in.

use bytes::Bytes;

/// Reads bytes from the front.
#[derive(Debug)]
struct Front(Bytes);

impl Front {
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
        // The sign is in the top byte: shifted down again it fills the upper bits.
        Some(i64::from(i32::from_le_bytes([0, a, b, c]) >> 8))
    }
}

fn number(number: i64) -> Bytes {
    Bytes::from(number.to_string())
}

/// How a collection is packed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
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

/// What comes next of a packed collection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Element(Bytes),
    End,
    /// The bytes do not follow the form.
    Wrong,
}

/// A packed collection, of which some elements may have been taken.
#[derive(Debug)]
pub(super) struct Packed {
    front: Front,
    form: Form,
    /// Of the numbers of an intset.
    width: u32,
    /// Of a zipmap: whether the next element is a field's value.
    at_value: bool,
}

impl Packed {
    /// Reads the head; nothing if that does not fit the bytes.
    pub(super) fn new(blob: Bytes, form: Form) -> Option<Self> {
        let whole = blob.len();
        let mut front = Front(blob);
        let mut width = 0;
        match form {
            Form::Listpack => {
                let total = u32::from_le_bytes(front.array()?);
                front.take(2)?;
                (total as usize == whole).then_some(())?;
            }
            Form::Ziplist => _ = front.take(10)?,
            Form::Intset => {
                width = u32::from_le_bytes(front.array()?);
                let count = u32::from_le_bytes(front.array()?);
                let bytes = (count as usize).checked_mul(width as usize)?;
                (matches!(width, 2 | 4 | 8) && front.0.len() == bytes).then_some(())?;
            }
            Form::Zipmap => _ = front.byte()?,
        }
        Some(Self { front, form, width, at_value: false })
    }

    pub(super) fn next(&mut self) -> Next {
        match self.step() {
            Some(Some(element)) => Next::Element(element),
            Some(None) if self.front.0.is_empty() => Next::End,
            _ => Next::Wrong,
        }
    }

    /// The next element; `Some(None)` where the collection should end.
    fn step(&mut self) -> Option<Option<Bytes>> {
        match self.form {
            Form::Listpack => self.listpack(),
            Form::Ziplist => self.ziplist(),
            Form::Intset => self.intset(),
            Form::Zipmap => self.zipmap(),
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

fn listpack_element(first: u8, front: &mut Front) -> Option<Bytes> {
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
