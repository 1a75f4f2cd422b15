//! Notes in each table of the meta tree when its records expire.

use crate::encoding::expiry::{Histogram, PROPERTY};
use crate::encoding::keys::{Space, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::{Collector, CollectorFactory, Properties, Tag};

#[derive(Debug)]
pub(super) struct Expiries;

impl CollectorFactory for Expiries {
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(Noting(Histogram::default()))]
    }
}

struct Noting(Histogram);

impl Collector for Noting {
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

/// When the records of a table expire; `None` if it does not say.
pub(crate) fn histogram_of(properties: &Properties) -> Option<Histogram> {
    Histogram::decode(properties.collected(PROPERTY)?)
}
