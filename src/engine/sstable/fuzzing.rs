//! Entry points for fuzzing of the parts of a table. Each takes any bytes; it must neither panic nor
//! allocate more than a multiple of them. Not in normal builds.

use std::sync::Arc;

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::filter::Filter;
use super::format::{Footer, MAGIC, checksum};
use super::index::Index;
use super::loader::unpack;
use super::properties::Properties;
use crate::engine::entry::{MAX_SEQUENCE, Tag};

/// The most keys that are looked up in one input.
const LOOKUPS: usize = 64;
/// The bytes of a footer that its checksum covers.
const COVERED: usize = 48;

/// Splits a number off the front.
fn number(data: &[u8]) -> Option<(u64, &[u8])> {
    data.split_first_chunk().map(|(number, rest)| (u64::from_le_bytes(*number), rest))
}

/// A footer as it is, and one with a right checksum and magic.
pub fn footer(data: &[u8]) {
    let Some((offset, bytes)) = number(data) else { return };
    let stated = bytes.get(36..).and_then(number).map_or(0, |(number, _)| number);
    let _ = Footer::decode(bytes, stated, offset);
    let Some(covered) = bytes.get(..COVERED) else { return };
    let crc = checksum(&[covered], 0, stated, offset);
    let whole = [covered, &crc.to_le_bytes(), &MAGIC].concat();
    if let Ok(footer) = Footer::decode(&whole, stated, offset) {
        let features = covered.get(44) == Some(&2);
        assert_eq!(footer.encode(stated, offset, features), whole, "a footer reads back");
    }
}

/// An index, after the end of the data.
pub fn index(data: &[u8]) {
    let Some((data_end, payload)) = number(data) else { return };
    let Ok(index) = Index::decode(payload, data_end) else { return };
    assert!(index.memory() <= 64 * (payload.len() + 64), "memory follows the input");
    for block in 0..=index.count() {
        let handle = index.handle(block);
        assert_eq!(handle.is_some(), block < index.count(), "a block has a place");
        assert!(index.offset(block) <= data_end, "a block is within the data");
    }
    let keys = payload.chunks(3).take(LOOKUPS).chain([&[][..]]);
    for key in keys {
        assert!(index.search(key, Tag::newest_at(MAX_SEQUENCE)) <= index.count(), "found within");
    }
}

/// A data block as it is, and a compressed one.
pub fn block(data: &[u8]) {
    if let Ok(block) = Block::parse(Arc::from(data), data.len()) {
        read_block(&block, data);
    }
    if let Ok(block) = unpack(data) {
        read_block(&block, data);
    }
}

/// All entries in both directions, and lookups of their keys and of other ones.
fn read_block(block: &Block, data: &[u8]) {
    let mut keys: Vec<Vec<u8>> = data.chunks(5).take(LOOKUPS / 2).map(<[u8]>::to_vec).collect();
    keys.push(Vec::new());
    if let Ok(mut cursor) = BlockCursor::at(block.clone(), 0, Vec::new()) {
        loop {
            if keys.len() < LOOKUPS {
                keys.push(cursor.key().to_vec());
            }
            assert!(cursor.value().len() <= block.memory(), "a value is within the block");
            assert_eq!(cursor.value_bytes(), cursor.value(), "a kept value is the value");
            match cursor.next() {
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
        while let Ok(true) = cursor.prev() {}
    }
    let newest = Tag::newest_at(MAX_SEQUENCE);
    for (n, key) in keys.iter().enumerate() {
        let _ = block.get(key, (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), newest);
        let _ = block.ends_before(key);
        if let Ok(at) = block.lower_bound(key, newest) {
            assert!(at <= block.count(), "found within the block");
        }
        if let Ok(mut cursor) = BlockCursor::at(block.clone(), 0, Vec::new()) {
            cursor.find_uncontested(Some(key));
            while cursor.next_uncontested(MAX_SEQUENCE) {}
        }
    }
}

/// A filter.
pub fn filter(data: &[u8]) {
    let Ok(filter) = Filter::decode(data) else { return };
    assert!(filter.memory() <= 2 * (data.len() + 64), "memory follows the input");
    for n in 0..LOOKUPS as u64 {
        filter.may_contain(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// The properties of a table.
pub fn properties(data: &[u8]) {
    let Ok(properties) = Properties::decode(data) else { return };
    if properties.unknown_features == 0 {
        let again = Properties::decode(&properties.encode());
        assert_eq!(again.ok().as_ref(), Some(&properties), "properties read back");
    }
}
