//! A list made anew, of any size, element by element: see `types::build`.

use super::elements::MIDDLE;
use super::reply_number;
use crate::encoding::meta::{Body, Header, Type};
use crate::error::Result;
use crate::types::build::Build;
use crate::types::txn::{DATA, Tx};

/// See the module's documentation.
pub(crate) struct ListBuilder<'s> {
    build: Build<'s>,
    tail: u64,
}

impl ListBuilder<'_> {
    /// Adds an element at the end.
    pub(crate) fn push(&mut self, tx: &Tx<'_>, element: &[u8]) -> Result<()> {
        tx.store().limits().check_value(element)?;
        self.build.put(DATA, &self.tail.to_be_bytes(), element)?;
        self.tail = self.tail.saturating_add(1);
        Ok(())
    }
}

impl<'s> Tx<'s> {
    /// Begins a list that will take the place of whatever `key` is.
    pub(crate) fn build_list(&mut self, key: &[u8]) -> Result<ListBuilder<'s>> {
        Ok(ListBuilder { build: self.build(key)?, tail: MIDDLE })
    }

    /// Replaces whatever is at `key` by the list; without elements the key ceases to exist. Its
    /// length.
    pub(crate) fn store_list(&mut self, key: &[u8], list: ListBuilder<'s>) -> Result<i64> {
        let ListBuilder { build, tail } = list;
        if tail > MIDDLE {
            let body = Body::Span { version: build.version(), head: MIDDLE, tail };
            build.finish(self, key, Header { kind: Type::List, expire_ms: 0 }, &body)?;
        } else if self.record(key)?.is_some() {
            self.delete_record(key);
        }
        Ok(reply_number(tail - MIDDLE))
    }
}
