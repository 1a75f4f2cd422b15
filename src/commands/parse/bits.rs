//! Parsers of bit commands.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::commands::sink::ReplySink;
use crate::commands::write_to::WriteTo;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::parse_integer;
use crate::types::{
    BitRange, BitSearch, BitUnit, BitfieldOp, FieldAction, FieldType, Overflow, bits,
};

pub(crate) fn bitcount(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    // Redis reads the range only if the key exists.
    let Some(value) = tx.string(args.bytes()?)? else { return Ok(Reply::Int(0)) };
    let range = match args.len() {
        0 => None,
        2 | 3 => {
            let (start, end) = (args.integer()?, args.integer()?);
            // Redis decides this before it reads the unit.
            if start < 0 && end < 0 && start > end {
                return Ok(Reply::Int(0));
            }
            Some(BitRange { start, end, unit: unit(&mut args)? })
        }
        _ => return Err(syntax_error()),
    };
    tx.bitcount_of(&value, range).map(Reply::Int)
}

pub(crate) fn bitpos(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let bit = match args.integer()? {
        0 => false,
        1 => true,
        _ => {
            let text = "ERR The bit argument must be 1 or 0.";
            return Err(Error::new(ErrorKind::Invalid, text));
        }
    };
    let Some(value) = tx.string(key)? else { return Ok(Reply::Int(if bit { -1 } else { 0 })) };
    let mut range = BitSearch::default();
    if args.len() > 3 {
        return Err(syntax_error());
    }
    if !args.is_empty() {
        range.start = args.integer()?;
    }
    if !args.is_empty() {
        // Redis checks the unit before the end.
        let end = args.bytes()?;
        range.unit = unit(&mut args)?;
        range.end = Some(parse_integer(end)?);
    }
    Ok(Reply::Int(tx.bitpos_of(&value, bit, range)?.unwrap_or(-1)))
}

/// The unit at the end of a range, if there is one.
fn unit(args: &mut Args<'_>) -> Result<BitUnit> {
    let unit = if args.take_word("BIT") { BitUnit::Bit } else { BitUnit::Byte };
    if unit == BitUnit::Byte {
        args.take_word("BYTE");
    }
    args.end().map(|()| unit)
}

pub(crate) fn getbit(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let offset = bit_offset(tx, args.bytes()?, None)?;
    Ok(tx.getbit(key, offset)?.into_reply())
}

pub(crate) fn setbit(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let offset = bit_offset(tx, args.bytes()?, None)?;
    let bit = match args.bytes()? {
        b"0" => false,
        b"1" => true,
        _ => {
            let text = "ERR bit is not an integer or out of range";
            return Err(Error::new(ErrorKind::OutOfRange, text));
        }
    };
    Ok(tx.setbit(key, offset, bit)?.into_reply())
}

/// An offset in bits. After `#` it counts fields of `field_bits` bits.
fn bit_offset(tx: &Tx<'_>, text: &[u8], field_bits: Option<u32>) -> Result<u64> {
    let (text, unit) = match (text, field_bits) {
        ([b'#', rest @ ..], Some(bits)) => (rest, i64::from(bits)),
        _ => (text, 1),
    };
    let offset = parse_integer(text).map_err(|_| bits::bad_offset())?;
    let offset = offset.wrapping_mul(unit);
    let offset = u64::try_from(offset).map_err(|_| bits::bad_offset())?;
    tx.byte_of(offset).map(|_| offset)
}

pub(crate) fn bitfield(
    tx: &mut Tx<'_>,
    mut args: Args<'_>,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let key = args.bytes()?;
    let ops = bitfield_ops(tx, args)?;
    tx.bitfield(key, &ops)?.write_to(sink);
    Ok(())
}

pub(crate) fn bitfield_ro(
    tx: &mut Tx<'_>,
    mut args: Args<'_>,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let key = args.bytes()?;
    let ops = bitfield_ops(tx, args)?;
    tx.bitfield_ro(key, &ops)?.write_to(sink);
    Ok(())
}

fn bitfield_ops(tx: &Tx<'_>, mut args: Args<'_>) -> Result<Vec<BitfieldOp>> {
    let mut ops = Vec::new();
    let mut overflow = Overflow::default();
    while !args.is_empty() {
        if args.take_word("OVERFLOW") {
            overflow = overflow_type(args.bytes()?)?;
            continue;
        }
        let with_number: Option<fn(i64) -> FieldAction> = if args.take_word("GET") {
            None
        } else if args.take_word("SET") {
            Some(FieldAction::Set)
        } else if args.take_word("INCRBY") {
            Some(FieldAction::IncrBy)
        } else {
            return Err(syntax_error());
        };
        let words = args.take(if with_number.is_some() { 3 } else { 2 })?;
        let mut words = Args::new(words);
        let field = field_type(words.bytes()?)?;
        let offset = bit_offset(tx, words.bytes()?, Some(field.bits()))?;
        let action = match with_number {
            Some(action) => action(words.integer()?),
            None => FieldAction::Get,
        };
        ops.push(BitfieldOp { field, offset, action, overflow });
    }
    Ok(ops)
}

fn overflow_type(word: &[u8]) -> Result<Overflow> {
    match word.to_ascii_uppercase().as_slice() {
        b"WRAP" => Ok(Overflow::Wrap),
        b"SAT" => Ok(Overflow::Saturate),
        b"FAIL" => Ok(Overflow::Fail),
        _ => Err(Error::new(ErrorKind::Syntax, "ERR Invalid OVERFLOW type specified")),
    }
}

/// The type of a field: `i` or `u`, then the number of bits.
fn field_type(text: &[u8]) -> Result<FieldType> {
    let bits = |digits| {
        let bits = parse_integer(digits).ok().and_then(|bits| u32::try_from(bits).ok());
        bits.ok_or_else(bits::bad_type)
    };
    match text {
        [b'i', digits @ ..] => FieldType::signed(bits(digits)?),
        [b'u', digits @ ..] => FieldType::unsigned(bits(digits)?),
        _ => Err(bits::bad_type()),
    }
}
