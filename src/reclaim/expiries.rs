//! Stores in each table of the meta tree when its records expire.

use crate::encoding::expiry::{Histogram, PROPERTY};
use crate::encoding::keys::{Space, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::{Collector, CollectorFactory, Properties, Tag};

#[derive(Debug)]
pub(super) struct ExpiryCollectors;

impl CollectorFactory for ExpiryCollectors {
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(ExpiryCollector(Histogram::default()))]
    }
}

struct ExpiryCollector(Histogram);

impl Collector for ExpiryCollector {
    fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        let user = split_meta_key(key).is_some_and(|(space, _)| space != Space::RESERVED);
        if !user || tag.is_delete() {
            return;
        }
        if let Ok(header) = Header::decode(value)
            && header.expire_ms != 0
        {
            self.0.add(header.expire_ms, (key.len() + value.len()) as u64);
        }
    }

    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(PROPERTY.to_vec(), self.0.encode())]
    }
}

/// The histogram of the expiries in a table; `None` if the table has none.
pub(crate) fn histogram_of(properties: &Properties) -> Option<Histogram> {
    Histogram::decode(properties.collected(PROPERTY)?)
}
