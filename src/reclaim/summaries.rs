//! Stores in each table of the data and score trees which collections its rows belong to.

use crate::encoding::collection_summary::{CollectionSummary, PROPERTY, SummaryBuilder};
use crate::encoding::keys::prefix_len;
use crate::engine::{Collector, CollectorFactory, Properties, Tag};

#[derive(Debug)]
pub(super) struct SummaryCollectors;

impl CollectorFactory for SummaryCollectors {
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(SummaryCollector::default())]
    }
}

#[derive(Default)]
struct SummaryCollector {
    builder: SummaryBuilder,
    /// The prefix of the current rows, up to the sub key.
    prefix: Vec<u8>,
}

impl Collector for SummaryCollector {
    fn add(&mut self, key: &[u8], _: Tag, value: &[u8]) {
        // A prefix delimits itself: no row of another collection begins with it.
        if self.prefix.is_empty() || !key.starts_with(&self.prefix) {
            self.prefix.clear();
            let prefix = prefix_len(key).and_then(|length| key.get(..length));
            self.prefix.extend_from_slice(prefix.unwrap_or_default());
        }
        match key.strip_prefix(&*self.prefix) {
            Some(sub_key) if !self.prefix.is_empty() => {
                self.builder.add(&self.prefix, sub_key, (key.len() + value.len()) as u64);
            }
            _ => self.builder.add_unknown(),
        }
    }

    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(PROPERTY.to_vec(), self.builder.finish().encode())]
    }
}

/// The summary of the collections in a table; `None` if the table has none.
pub(super) fn summary_of(properties: &Properties) -> Option<CollectionSummary> {
    CollectionSummary::decode(properties.collected(PROPERTY)?)
}
