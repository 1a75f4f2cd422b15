//! BITOP: strings combined bit by bit.

use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::types::string::chunks::StringValue;
use crate::types::string::length;

/// How BITOP combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// A bit is set where all sources have it set.
    And,
    /// A bit is set where any source has it set.
    Or,
    /// A bit is set where an odd number of sources have it set.
    Xor,
    /// A bit is set where the only source has it clear.
    Not,
}

impl Tx<'_> {
    pub(crate) fn bitop(
        &mut self,
        op: BitOp,
        destination: &[u8],
        sources: &[&[u8]],
    ) -> Result<i64> {
        if op == BitOp::Not && sources.len() != 1 {
            let text = "ERR BITOP NOT must be called with a single source key.";
            return Err(Error::new(ErrorKind::Syntax, text));
        }
        let values = self.as_read(|tx| {
            let whole = || StringValue::Whole(Bytes::new());
            let value = |key: &&[u8]| Ok(tx.string(key)?.unwrap_or_else(whole));
            sources.iter().map(value).collect::<Result<Vec<_>>>()
        })?;
        let longest = values.iter().map(StringValue::len).max().unwrap_or(0);
        if self.store().strings().is_large(longest) {
            self.meet(destination)?;
            self.put_combined(op, destination, &values, longest)?;
            self.notify(Classes::STRING, "set", destination);
        } else if longest > 0 {
            let combined = self.combined_bits(op, &values, 0..longest)?;
            self.set(destination, &combined)?;
        } else if self.record(destination)?.is_some() {
            self.frees_space();
            self.delete_record(destination);
            self.notify(Classes::GENERIC, "del", destination);
        }
        Ok(length(longest))
    }

    /// Sets a key to what is combined of the values, chunk by chunk: in bounded memory.
    fn put_combined(
        &mut self,
        op: BitOp,
        destination: &[u8],
        values: &[StringValue],
        len: usize,
    ) -> Result<()> {
        let mut writer = self.write_string(destination)?;
        self.store().limits().check_value_len(len)?;
        let step = writer.chunk_bytes();
        for start in (0..len).step_by(step) {
            let chunk = self.combined_bits(op, values, start..len.min(start + step))?;
            writer.push(&chunk)?;
        }
        writer.finish(self, destination, 0)
    }

    /// What is combined of a range of the values, as if each were at least as long.
    fn combined_bits(
        &self,
        op: BitOp,
        values: &[StringValue],
        range: Range<usize>,
    ) -> Result<Vec<u8>> {
        let part = |value: &StringValue| value.range(self, range.clone());
        let parts = values.iter().map(part).collect::<Result<Vec<_>>>()?;
        Ok(combine(op, &parts, range.len()))
    }
}

fn combine(op: BitOp, values: &[Bytes], longest: usize) -> Vec<u8> {
    let Some((first, others)) = values.split_first() else { return Vec::new() };
    let mut result = first.to_vec();
    result.resize(longest, 0);
    if op == BitOp::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    for other in others {
        let pairs = result.iter_mut().zip(other.iter());
        match op {
            BitOp::And => pairs.for_each(|(byte, with)| *byte &= with),
            BitOp::Or => pairs.for_each(|(byte, with)| *byte |= with),
            BitOp::Xor => pairs.for_each(|(byte, with)| *byte ^= with),
            BitOp::Not => {}
        }
        if op == BitOp::And {
            result.iter_mut().skip(other.len()).for_each(|byte| *byte = 0);
        }
    }
    result
}
