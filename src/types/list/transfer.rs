//! Commands over several lists: from one to another, or from the first that has elements.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::types::db::commands;
use crate::types::list::Side;
use crate::types::txn::Tx;

commands! {
    /// LMOVE: takes an element from one end of `source` and adds it at one end of `destination`,
    /// which may be the same list; the element, `None` if there is no source.
    write [source, destination] fn lmove(
        source: &[u8], destination: &[u8], from: Side, to: Side,
    ) -> Option<Bytes>;
    /// RPOPLPUSH: LMOVE from the right to the left.
    write [source, destination] fn rpoplpush(source: &[u8], destination: &[u8]) -> Option<Bytes>;
    /// LMPOP: takes up to `count` elements of the first of the lists that exists; its key and the
    /// elements, `None` if none exists.
    write_keys [keys] fn lmpop(
        keys: &[&[u8]], from: Side, count: u64,
    ) -> Option<(Bytes, Vec<Bytes>)>;
}

/// An error for a number of keys that is 0.
pub(crate) fn check_keys(count: u64) -> Result<()> {
    above_zero("numkeys", count)
}

/// An error for a number of elements that is 0.
pub(crate) fn check_count(count: u64) -> Result<()> {
    above_zero("count", count)
}

fn above_zero(what: &str, count: u64) -> Result<()> {
    if count > 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::OutOfRange, format!("ERR {what} should be greater than 0")))
}

impl Tx<'_> {
    pub(crate) fn lmove(
        &mut self,
        source: &[u8],
        destination: &[u8],
        from: Side,
        to: Side,
    ) -> Result<Option<Bytes>> {
        let Some(mut list) = self.list(source)? else { return Ok(None) };
        // On one list, so that its last element takes neither it nor its expiry away.
        if source == destination {
            let Some(element) = list.pop(self, from)? else { return Ok(None) };
            list.push(self, to, element.clone())?;
            self.save_list(&list)?;
            return Ok(Some(element));
        }
        let mut target = self.list_or_new(destination)?;
        let Some(element) = list.pop(self, from)? else { return Ok(None) };
        target.push(self, to, element.clone())?;
        self.save_list(&list)?;
        self.save_list(&target)?;
        Ok(Some(element))
    }

    pub(crate) fn rpoplpush(&mut self, source: &[u8], destination: &[u8]) -> Result<Option<Bytes>> {
        self.lmove(source, destination, Side::Right, Side::Left)
    }

    pub(crate) fn lmpop(
        &mut self,
        keys: &[&[u8]],
        from: Side,
        count: u64,
    ) -> Result<Option<(Bytes, Vec<Bytes>)>> {
        check_keys(keys.len() as u64)?;
        check_count(count)?;
        self.frees_space();
        for key in keys {
            if let Some(mut list) = self.list(key)? {
                let popped = list.pop_many(self, from, count)?;
                self.save_list(&list)?;
                return Ok(Some((Bytes::copy_from_slice(key), popped)));
            }
        }
        Ok(None)
    }
}
