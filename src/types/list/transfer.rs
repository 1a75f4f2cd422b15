//! Commands on several lists.

use bytes::Bytes;

use super::{popped_at, pushed_at};
use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::list::Side;

commands! {
    /// LMPOP: removes up to `count` elements of the first list that exists; its key and the
    /// elements, `None` if none exists.
    write_keys [keys] fn lmpop(
        keys: &[&[u8]], from: Side, count: u64,
    ) -> Option<(Bytes, Vec<Bytes>)>;
}

/// Fails if the number of keys is 0.
pub(crate) fn check_keys(count: u64) -> Result<()> {
    above_zero("numkeys", count)
}

/// Fails if the number of elements is 0.
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
        // On the one list, so that moving its last element deletes neither the list nor its expiry.
        if source == destination {
            let Some(element) = list.pop(self, from)? else { return Ok(None) };
            list.push(self, to, element.clone())?;
            self.save_list(&list)?;
            self.notify(Classes::LIST, pushed_at(to), destination);
            self.notify(Classes::LIST, popped_at(from), source);
            return Ok(Some(element));
        }
        let mut target = self.list_or_new(destination)?;
        let Some(element) = list.pop(self, from)? else { return Ok(None) };
        target.push(self, to, element.clone())?;
        self.save_list(&list)?;
        self.save_list(&target)?;
        self.notify(Classes::LIST, pushed_at(to), destination);
        self.notify_taken(Classes::LIST, popped_at(from), source)?;
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
                self.notify_taken(Classes::LIST, popped_at(from), key)?;
                return Ok(Some((Bytes::copy_from_slice(key), popped)));
            }
        }
        Ok(None)
    }
}
