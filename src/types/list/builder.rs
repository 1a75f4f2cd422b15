//! Builds a list of any size, element by element, on top of `types::collection_builder`.

use super::elements::MIDDLE;
use super::reply_number;
use crate::encoding::meta::{Body, Header, Type};
use crate::error::Result;
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::types::collection_builder::CollectionBuilder;

/// A list under construction.
pub(crate) struct ListBuilder<'s> {
    build: CollectionBuilder<'s>,
    tail: u64,
}

impl ListBuilder<'_> {
    /// Adds an element at the end.
    pub(crate) fn push(&mut self, tx: &Tx<'_>, element: &[u8]) -> Result<()> {
        tx.store().limits().check_value(element)?;
        self.build.put_plain(&self.tail.to_be_bytes(), element)?;
        self.tail = self.tail.saturating_add(1);
        Ok(())
    }
}

impl<'s> Tx<'s> {
    /// Begins a list that will replace whatever `key` holds.
    pub(crate) fn build_list(&mut self, key: &[u8]) -> Result<ListBuilder<'s>> {
        Ok(ListBuilder { build: self.build_collection(key)?, tail: MIDDLE })
    }

    /// Replaces whatever `key` holds by the list; its length. Without elements the key is deleted.
    pub(crate) fn store_list(&mut self, key: &[u8], list: ListBuilder<'s>) -> Result<i64> {
        let ListBuilder { build, tail } = list;
        if tail > MIDDLE {
            let body = Body::Span { version: build.version(), head: MIDDLE, tail };
            build.finish(self, key, Header { kind: Type::List, expire_ms: 0 }, &body)?;
            self.notify(Classes::LIST, "sortstore", key);
        } else if self.record(key)?.is_some() {
            self.delete_record(key);
            self.notify(Classes::GENERIC, "del", key);
        }
        Ok(reply_number(tail - MIDDLE))
    }
}
