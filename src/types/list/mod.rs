//! Lists.
//!
//! - `elements`: how elements are stored, and every access to them; `builder`: new lists;
//! - this file: ends, indexes and ranges;
//! - `search`: commands that find an element; `transfer`: commands on several lists.

mod builder;
mod elements;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod queue_tests;
mod search;
#[cfg(test)]
mod tests;
mod transfer;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;

pub(crate) use elements::ElementWalk;
use elements::Elements;
pub(crate) use search::check_rank;
pub use search::{InsertPosition, Search};
pub(crate) use transfer::{check_count, check_keys};

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where the first element is.
    Left,
    /// Where the last element is.
    Right,
}

commands! {
    /// LINDEX: the element at an index; a negative one counts from the end, -1 being the last.
    read fn lindex(key: &[u8], index: i64) -> Option<Bytes>;
    /// LPOP: removes the first element and returns it.
    write [key] fn lpop(key: &[u8]) -> Option<Bytes>;
    /// LPOP with a count: removes up to that many of the first elements; `None` if the list does
    /// not exist.
    write [key] fn lpop_many(key: &[u8], count: u64) -> Option<Vec<Bytes>>;
    /// RPOP: removes the last element and returns it.
    write [key] fn rpop(key: &[u8]) -> Option<Bytes>;
    /// RPOP with a count: removes up to that many of the last elements, the last one first; `None`
    /// if the list does not exist.
    write [key] fn rpop_many(key: &[u8], count: u64) -> Option<Vec<Bytes>>;
    /// LSET: replaces the element at an index, which must exist.
    write [key] fn lset(key: &[u8], index: i64, element: &[u8]) -> ();
}

/// Converts a number of elements, or a position, for a reply.
fn reply_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The event of elements that are added at this side.
fn pushed_at(side: Side) -> &'static str {
    match side {
        Side::Left => "lpush",
        Side::Right => "rpush",
    }
}

/// The event of elements that are taken from this side.
fn popped_at(side: Side) -> &'static str {
    match side {
        Side::Left => "lpop",
        Side::Right => "rpop",
    }
}

/// The error for a command that needs the list to exist.
pub(crate) fn no_such_key() -> Error {
    Error::new(ErrorKind::NoSuchKey, "ERR no such key")
}

impl Tx<'_> {
    pub(crate) fn llen(&self, key: &[u8]) -> Result<i64> {
        Ok(self.list(key)?.map_or(0, |list| reply_number(list.len())))
    }

    pub(crate) fn lindex(&self, key: &[u8], index: i64) -> Result<Option<Bytes>> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        list.position(index).map(|position| list.get(self, position)).transpose()
    }

    pub(crate) fn lrange(&self, key: &[u8], start: i64, stop: i64) -> Result<Vec<Bytes>> {
        self.elements_between(key, start, stop)?
            .map_or_else(|| Ok(Vec::new()), ElementWalk::collect)
    }

    /// Walks over what LRANGE returns; `None` if the list does not exist.
    pub(crate) fn elements_between(
        &self,
        key: &[u8],
        start: i64,
        stop: i64,
    ) -> Result<Option<ElementWalk>> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        list.walk(self, list.positions(start, stop), Side::Left).map(Some)
    }

    pub(crate) fn lpush(&mut self, key: &[u8], elements: &[&[u8]]) -> Result<i64> {
        let list = self.list_or_new(key)?;
        self.push_all(key, list, Side::Left, elements)
    }

    pub(crate) fn rpush(&mut self, key: &[u8], elements: &[&[u8]]) -> Result<i64> {
        let list = self.list_or_new(key)?;
        self.push_all(key, list, Side::Right, elements)
    }

    pub(crate) fn lpushx(&mut self, key: &[u8], elements: &[&[u8]]) -> Result<i64> {
        let Some(list) = self.list(key)? else { return Ok(0) };
        self.push_all(key, list, Side::Left, elements)
    }

    pub(crate) fn rpushx(&mut self, key: &[u8], elements: &[&[u8]]) -> Result<i64> {
        let Some(list) = self.list(key)? else { return Ok(0) };
        self.push_all(key, list, Side::Right, elements)
    }

    fn push_all(
        &mut self,
        key: &[u8],
        mut list: Elements<'_>,
        side: Side,
        elements: &[&[u8]],
    ) -> Result<i64> {
        for element in elements {
            list.push(self, side, Bytes::copy_from_slice(element))?;
        }
        self.save_list(&list)?;
        self.notify(Classes::LIST, pushed_at(side), key);
        Ok(reply_number(list.len()))
    }

    pub(crate) fn lpop(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        self.pop_one(key, Side::Left)
    }

    pub(crate) fn rpop(&mut self, key: &[u8]) -> Result<Option<Bytes>> {
        self.pop_one(key, Side::Right)
    }

    fn pop_one(&mut self, key: &[u8], side: Side) -> Result<Option<Bytes>> {
        self.frees_space();
        let Some(mut list) = self.list(key)? else { return Ok(None) };
        let popped = list.pop(self, side)?;
        self.save_list(&list)?;
        self.notify_taken(Classes::LIST, popped_at(side), key)?;
        Ok(popped)
    }

    pub(crate) fn lpop_many(&mut self, key: &[u8], count: u64) -> Result<Option<Vec<Bytes>>> {
        self.pop_many(key, Side::Left, count)
    }

    pub(crate) fn rpop_many(&mut self, key: &[u8], count: u64) -> Result<Option<Vec<Bytes>>> {
        self.pop_many(key, Side::Right, count)
    }

    fn pop_many(&mut self, key: &[u8], side: Side, count: u64) -> Result<Option<Vec<Bytes>>> {
        self.frees_space();
        let Some(mut list) = self.list(key)? else { return Ok(None) };
        let popped = list.pop_many(self, side, count)?;
        self.save_list(&list)?;
        if !popped.is_empty() {
            self.notify_taken(Classes::LIST, popped_at(side), key)?;
        }
        Ok(Some(popped))
    }

    pub(crate) fn lset(&mut self, key: &[u8], index: i64, element: &[u8]) -> Result<()> {
        let mut list = self.list(key)?.ok_or_else(no_such_key)?;
        let Some(position) = list.position(index) else {
            return Err(Error::new(ErrorKind::OutOfRange, "ERR index out of range"));
        };
        list.put(self, position, Bytes::copy_from_slice(element))?;
        self.notify(Classes::LIST, "lset", key);
        Ok(())
    }

    pub(crate) fn ltrim(&mut self, key: &[u8], start: i64, stop: i64) -> Result<()> {
        self.frees_space();
        let Some(mut list) = self.list(key)? else { return Ok(()) };
        list.keep(&list.positions(start, stop));
        self.save_list(&list)?;
        self.notify_taken(Classes::LIST, "ltrim", key)
    }
}
