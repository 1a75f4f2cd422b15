//! The parts of a table that stay in memory while it is used: index and filter.

use super::filter::Filter;
use super::format::{Footer, Malformed};
use super::frame::Tail;
use super::index::Index;
use super::loader::Loader;
use super::properties::Properties;
use crate::error::Result;

/// The parts of a table that stay in memory while it is used.
#[derive(Debug)]
pub(super) struct Resident {
    pub(super) index: Index,
    pub(super) filter: Option<Filter>,
}

impl Resident {
    /// Reads index and filter, from `tail` as far as they are in it, and checks the index against
    /// the properties.
    pub(super) fn read(
        loader: &Loader,
        footer: &Footer,
        properties: &Properties,
        tail: &Tail,
    ) -> Result<Self> {
        let payload = tail.payload(loader, footer.index)?;
        let index = Index::decode(&payload, footer.data_end())
            .map_err(|why| loader.malformed(footer.index.offset, why))?;
        check(&index, properties).map_err(|why| loader.malformed(footer.index.offset, why))?;
        if footer.filter.length == 0 {
            return Ok(Self { index, filter: None });
        }
        let payload = tail.payload(loader, footer.filter)?;
        let filter =
            Filter::decode(&payload).map_err(|why| loader.malformed(footer.filter.offset, why))?;
        Ok(Self { index, filter: Some(filter) })
    }

    /// Memory of both in bytes.
    pub(super) fn memory(&self) -> usize {
        self.index.memory() + self.filter.as_ref().map_or(0, Filter::memory)
    }
}

fn check(index: &Index, properties: &Properties) -> std::result::Result<(), Malformed> {
    if index.count() as u64 != properties.blocks {
        return Err(Malformed("index and properties disagree on the number of blocks"));
    }
    if index.total_weight() != properties.weight {
        return Err(Malformed("index and properties disagree on the weights"));
    }
    Ok(())
}
