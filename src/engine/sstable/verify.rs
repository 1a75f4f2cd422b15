//! Verifies a whole table: all checksums, the order of all entries, and that index, filter and
//! properties match the entries.

use std::cmp::Ordering;

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::format::Malformed;
use super::properties::Properties;
use super::resident::Resident;
use super::table::Table;
use crate::engine::entry::{Tag, bound, compare};
use crate::error::Error;

/// What was found in the table so far.
struct TableCheck {
    properties: Properties,
    last_key: Vec<u8>,
    last_tag: Tag,
}

impl Table {
    /// Checks the whole file on disk, without using any cache.
    pub fn verify(&self) -> Result<(), Error> {
        let resident = self.read_resident()?;
        let properties = Properties::empty(self.properties().hash_seed);
        let mut check =
            TableCheck { properties, last_key: Vec::new(), last_tag: Tag::newest_at(0) };
        for number in self.first_block(&resident.index)..resident.index.count() {
            let at = |why| self.malformed(&resident.index, number, why);
            let handle = resident.index.handle(number).ok_or_else(|| at(Malformed("no handle")))?;
            let block = self.loader.block(handle)?;
            check.block(&resident, number, block).map_err(at)?;
        }
        if self.lower.is_some() {
            // The properties are those of the whole file, of which a part is gone.
            return Ok(());
        }
        check.properties.blocks = resident.index.count() as u64;
        check.properties.largest = bound(&check.last_key).to_vec();
        check.properties.collected.clone_from(&self.properties().collected);
        if check.properties != *self.properties() {
            let why = Malformed("properties do not match the entries");
            return Err(self.loader.malformed(self.footer.properties.offset, why));
        }
        Ok(())
    }
}

impl TableCheck {
    fn block(&mut self, resident: &Resident, number: usize, block: Block) -> Result<(), Malformed> {
        let probe = block.clone();
        let (mut weight, mut newest) = (0, 0);
        let mut at = BlockCursor::at(block, 0, Vec::new())?;
        loop {
            let (key, tag) = (at.key(), at.tag());
            self.entry(key, tag, at.value())?;
            (weight, newest) = (weight + tag.weight(), newest.max(tag.sequence()));
            if resident.index.search(key, tag) != number {
                return Err(Malformed("index does not lead to an entry"));
            }
            let hash = self.properties.hash_seed.hash(key);
            if resident.filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
                return Err(Malformed("filter denies a key of the table"));
            }
            if probe.get(key, hash, tag)?.map(|(found, _)| found) != Some(tag) {
                return Err(Malformed("block does not find one of its entries"));
            }
            if !at.next()? {
                break;
            }
        }
        let index = &resident.index;
        let has_later = |sequence| index.younger(number..number + 1, sequence).next().is_some();
        let sums_match = index.weight(number..number + 1) == weight
            && (index.total_weight().is_none()
                || !has_later(newest) && newest.checked_sub(1).is_none_or(has_later));
        if !sums_match {
            return Err(Malformed("index does not have the weight of the block"));
        }
        Ok(())
    }

    fn entry(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<(), Malformed> {
        let properties = &mut self.properties;
        if properties.entries == 0 {
            properties.smallest = bound(key).to_vec();
        } else if compare(&self.last_key, self.last_tag, key, tag) != Ordering::Less {
            return Err(Malformed("entries do not ascend"));
        }
        properties.count(key, tag, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_tag = tag;
        Ok(())
    }
}
