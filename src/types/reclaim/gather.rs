//! Notes in each table of the data and score trees which collections its rows belong to.

use crate::encoding::groups::{Gatherer, Groups, PROPERTY};
use crate::encoding::keys::prefix_len;
use crate::engine::{Collector, CollectorFactory, Properties, Tag};

#[derive(Debug)]
pub(super) struct Gather;

impl CollectorFactory for Gather {
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(Gathering::default())]
    }
}

#[derive(Default)]
struct Gathering {
    gatherer: Gatherer,
    /// What the keys of the rows in hand begin with, up to the sub key.
    prefix: Vec<u8>,
}

impl Collector for Gathering {
    fn add(&mut self, key: &[u8], _: Tag, value: &[u8]) {
        // A prefix delimits itself: no row of another group begins with it.
        if self.prefix.is_empty() || !key.starts_with(&self.prefix) {
            self.prefix.clear();
            let prefix = prefix_len(key).and_then(|length| key.get(..length));
            self.prefix.extend_from_slice(prefix.unwrap_or_default());
        }
        match key.strip_prefix(&*self.prefix) {
            Some(sub_key) if !self.prefix.is_empty() => {
                self.gatherer.add(&self.prefix, sub_key, (key.len() + value.len()) as u64);
            }
            _ => self.gatherer.add_unknown(),
        }
    }

    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(PROPERTY.to_vec(), self.gatherer.finish().encode())]
    }
}

/// The groups of a table's rows; `None` if it does not say.
pub(super) fn groups_of(properties: &Properties) -> Option<Groups> {
    Groups::decode(properties.collected(PROPERTY)?)
}
