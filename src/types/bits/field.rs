//! BITFIELD: integers of 1 to 64 bits at any bit of a string.

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;

commands! {
    /// BITFIELD: reads and writes integers inside the string, one after the other; the result of
    /// each operation, `None` for one that failed because of overflow.
    write [key] fn bitfield(key: &[u8], ops: &[BitfieldOp]) -> Vec<Option<i64>>;
    /// BITFIELD_RO: reads integers inside the string; the result of each operation.
    read fn bitfield_ro(key: &[u8], ops: &[BitfieldOp]) -> Vec<Option<i64>>;
}

/// The type of an integer field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    signed: bool,
    bits: u32,
}

impl FieldType {
    /// A signed integer of 1 to 64 bits.
    pub fn signed(bits: u32) -> Result<Self> {
        Self::checked(true, bits, 64)
    }

    /// An unsigned integer of 1 to 63 bits.
    pub fn unsigned(bits: u32) -> Result<Self> {
        Self::checked(false, bits, 63)
    }

    fn checked(signed: bool, bits: u32, most: u32) -> Result<Self> {
        if (1..=most).contains(&bits) { Ok(Self { signed, bits }) } else { Err(bad_type()) }
    }

    /// Whether the field may be negative.
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// The number of bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }
}

/// The error for an invalid field type.
pub(crate) fn bad_type() -> Error {
    let text = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not \
                supported but i64 is.";
    Error::new(ErrorKind::Invalid, text)
}

/// What happens to a result that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The result wraps around: its higher bits are lost.
    #[default]
    Wrap,
    /// The result becomes the nearest number that fits.
    Saturate,
    /// The operation fails and writes nothing.
    Fail,
}

/// What an operation does to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldAction {
    /// Returns the value.
    Get,
    /// Sets the value and returns the old one.
    Set(i64),
    /// Adds to the value and returns the sum.
    IncrBy(i64),
}

/// An operation of BITFIELD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitfieldOp {
    /// The type of the field.
    pub field: FieldType,
    /// The first bit of the field.
    pub offset: u64,
    /// What the operation does to the field.
    pub action: FieldAction,
    /// What happens to a result that does not fit.
    pub overflow: Overflow,
}

impl BitfieldOp {
    fn writes(&self) -> bool {
        self.action != FieldAction::Get
    }
}

impl Tx<'_> {
    pub(crate) fn bitfield(&mut self, key: &[u8], ops: &[BitfieldOp]) -> Result<Vec<Option<i64>>> {
        ops.iter().try_for_each(|op| self.byte_of(op.offset).map(|_| ()))?;
        let last = ops.iter().filter(|op| op.writes()).map(last_byte).max();
        let Some(last) = last else { return self.as_read(|tx| tx.bitfield_ro(key, ops)) };
        let mut draft = self.draft(key)?;
        let mut changed = !draft.exists() || last >= draft.len();
        // Also for a write that then fails.
        draft.grow(self, last.saturating_add(1))?;
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            let (first, shifted) = first_byte(op);
            let (mut before, mut after) = ([0; WINDOW], [0; WINDOW]);
            let len = draft.read(self, first, &mut before)?;
            after.copy_from_slice(&before);
            let bytes = after.get_mut(..len).unwrap_or_default();
            answers.push(apply(bytes, &shifted, &mut changed));
            if before != after {
                draft.write(self, first, after.get(..len).unwrap_or_default())?;
            }
        }
        if changed {
            self.put_draft(draft)?;
            self.notify(Classes::STRING, "setbit", key);
        }
        Ok(answers)
    }

    pub(crate) fn bitfield_ro(&self, key: &[u8], ops: &[BitfieldOp]) -> Result<Vec<Option<i64>>> {
        if ops.iter().any(BitfieldOp::writes) {
            let text = "ERR BITFIELD_RO only supports the GET subcommand";
            return Err(Error::new(ErrorKind::Syntax, text));
        }
        ops.iter().try_for_each(|op| self.byte_of(op.offset).map(|_| ()))?;
        let Some(value) = self.string(key)? else { return Ok(vec![Some(0); ops.len()]) };
        let field = |op| {
            let (first, shifted) = first_byte(op);
            let bytes = value.range(self, first..first.saturating_add(WINDOW))?;
            Ok(Some(read(&bytes, &shifted)))
        };
        ops.iter().map(field).collect()
    }
}

/// The most bytes that a field is in.
const WINDOW: usize = 9;

/// The first byte that a field is in, and the operation as if the string began there.
fn first_byte(op: &BitfieldOp) -> (usize, BitfieldOp) {
    let first = usize::try_from(op.offset / 8).unwrap_or(usize::MAX);
    (first, BitfieldOp { offset: op.offset % 8, ..*op })
}

fn last_byte(op: &BitfieldOp) -> usize {
    usize::try_from((op.offset + u64::from(op.field.bits) - 1) / 8).unwrap_or(usize::MAX)
}

/// Runs an operation, and notes whether it changed the field.
fn apply(value: &mut [u8], op: &BitfieldOp, changed: &mut bool) -> Option<i64> {
    let old = read(value, op);
    match op.action {
        FieldAction::Get => Some(old),
        FieldAction::Set(new) => {
            let new = fit(op, new, 0)?;
            *changed |= new != old;
            write(value, op, new);
            Some(old)
        }
        FieldAction::IncrBy(increment) => {
            let new = fit(op, old, increment)?;
            *changed |= new != old;
            write(value, op, new);
            Some(new)
        }
    }
}

/// `value + increment` as the field can hold it; `None` if it does not fit and the operation fails.
fn fit(op: &BitfieldOp, value: i64, increment: i64) -> Option<i64> {
    let FieldType { signed, bits } = op.field;
    let (least, most) = match (signed, bits) {
        (true, 64) => (i64::MIN, i64::MAX),
        (true, _) => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
        (false, _) => (0, i64::MAX >> (63 - bits)),
    };
    // A negative value for an unsigned field stands for a large one.
    let wide = if signed { i128::from(value) } else { i128::from(value.cast_unsigned()) };
    let sum = wide + i128::from(increment);
    // In the reference the room above a very negative value overflows, and it counts as too large.
    let no_room = signed && bits < 64 && increment > most.wrapping_sub(value);
    let limit = if sum > i128::from(most) || no_room {
        most
    } else if sum < i128::from(least) {
        least
    } else {
        return i64::try_from(sum).ok();
    };
    match op.overflow {
        Overflow::Saturate => Some(limit),
        Overflow::Fail => None,
        Overflow::Wrap => Some(extend(op.field, value.wrapping_add(increment).cast_unsigned())),
    }
}

/// The number that the lowest bits of `raw` represent.
fn extend(field: FieldType, raw: u64) -> i64 {
    let aside = 64 - field.bits;
    let top = raw << aside;
    if field.signed { top.cast_signed() >> aside } else { (top >> aside).cast_signed() }
}

/// The up to nine bytes that hold a field, at the top, and the distance of its last bit from the
/// bottom.
fn window(value: &[u8], op: &BitfieldOp) -> (u128, u64) {
    let first = usize::try_from(op.offset / 8).unwrap_or(usize::MAX);
    let bytes = value.get(first..).unwrap_or_default();
    let mut window = [0; 16];
    window.iter_mut().zip(bytes).take(WINDOW).for_each(|(to, from)| *to = *from);
    (u128::from_be_bytes(window), 128 - op.offset % 8 - u64::from(op.field.bits))
}

fn read(value: &[u8], op: &BitfieldOp) -> i64 {
    let (window, below) = window(value, op);
    extend(op.field, low_half(window >> below))
}

fn write(value: &mut [u8], op: &BitfieldOp, new: i64) {
    let (window, below) = window(value, op);
    let mask = (u128::MAX >> (128 - op.field.bits)) << below;
    let placed = (u128::from(new.cast_unsigned()) << below) & mask;
    let changed = ((window & !mask) | placed).to_be_bytes();
    let first = usize::try_from(op.offset / 8).unwrap_or(usize::MAX);
    let bytes = value.get_mut(first..).unwrap_or_default();
    bytes.iter_mut().zip(changed).take(WINDOW).for_each(|(to, from)| *to = from);
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is meant")]
fn low_half(wide: u128) -> u64 {
    wide as u64
}
