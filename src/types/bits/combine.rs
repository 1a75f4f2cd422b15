//! BITOP: strings combined bit by bit.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
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
            sources
                .iter()
                .map(|key| Ok(tx.get(key)?.unwrap_or_default()))
                .collect::<Result<Vec<_>>>()
        })?;
        let combined = combine(op, &values);
        if !combined.is_empty() {
            self.set(destination, &combined)?;
        } else if self.record(destination)?.is_some() {
            self.frees_space();
            self.delete_record(destination);
            self.notify(Classes::GENERIC, "del", destination);
        }
        Ok(length(combined.len()))
    }
}

fn combine(op: BitOp, values: &[Bytes]) -> Vec<u8> {
    let longest = values.iter().map(Bytes::len).max().unwrap_or(0);
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
