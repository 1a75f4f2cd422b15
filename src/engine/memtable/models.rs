//! What loom checks of a memtable: readers and a writer in every order that the memory model allows.

use std::sync::Arc;

use loom::thread;

use super::{Memtable, MemtableCursor};
use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, Sequence, Tag};
use crate::engine::snapshot::Sequences;

/// A memtable with one bucket, and the sequence numbers that its readers see.
struct Tree {
    memtable: Arc<Memtable>,
    sequences: Sequences,
}

/// The keys in the order they are written. Each write has the next sequence number, which is its
/// value too. The hash of a key is its first byte, and all are in one bucket.
type Writes = &'static [&'static [u8]];

impl Tree {
    fn new() -> Arc<Self> {
        let memtable = Arc::new(Memtable::new(1));
        Arc::new(Self { memtable, sequences: Sequences::starting_after(0) })
    }

    fn write(&self, keys: Writes) {
        for key in keys {
            let sequence = self.sequences.allocate();
            let tag = Tag::new(sequence, EntryKind::Put);
            self.memtable.insert(u64::from(key[0]), key, tag, &sequence.to_le_bytes()).unwrap();
            self.sequences.publish(sequence);
        }
    }

    fn get(&self, key: &[u8], at: Sequence) -> Option<Sequence> {
        let found = self.memtable.get(u64::from(key[0]), key, at)?;
        assert_eq!(found.key(), key);
        assert_eq!(found.value(), found.tag().sequence().to_le_bytes());
        Some(found.tag().sequence())
    }
}

/// The sequence number of the last of `keys` at or before `at` that is `key`.
fn expected(keys: Writes, key: &[u8], at: Sequence) -> Option<Sequence> {
    (1..=at).rev().find(|sequence| keys[*sequence as usize - 1] == key)
}

/// A reader finds of every key the newest version that was visible when it began, and every older
/// one, while the writer goes on.
fn reads_beside(keys: Writes) {
    loom::model(move || {
        let tree = Tree::new();
        let writer = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || tree.write(keys))
        };
        let visible = tree.sequences.visible();
        for at in 0..=visible {
            for key in keys {
                assert_eq!(tree.get(key, at), expected(keys, key, at), "{key:?} at {at}");
            }
        }
        writer.join().unwrap();
    });
}

/// Versions of one key: each new one takes the place of the one before, and jumps over older ones.
pub fn versions_of_a_key() {
    reads_beside(&[b"a", b"a", b"a"]);
}

/// Keys of one bucket, and a second version in the middle of its chain.
pub fn keys_of_a_bucket() {
    reads_beside(&[b"a", b"b", b"a"]);
}

/// A bucket whose chain is full: further keys are in the map.
pub fn keys_beyond_a_chain() {
    reads_beside(&[b"a", b"b", b"c", b"c"]);
}

/// A scan finds all that was visible when it began, in order.
pub fn scan_beside_a_writer() {
    const KEYS: Writes = &[b"b", b"a", b"b"];
    loom::model(|| {
        let tree = Tree::new();
        let writer = {
            let tree = Arc::clone(&tree);
            thread::spawn(move || tree.write(KEYS))
        };
        let visible = tree.sequences.visible();
        let mut cursor = MemtableCursor::new(Arc::clone(&tree.memtable));
        cursor.seek_to_first().unwrap();
        let mut found = Vec::new();
        while cursor.valid() {
            found.push((cursor.key().to_vec(), std::cmp::Reverse(cursor.tag().sequence())));
            cursor.next().unwrap();
        }
        assert!(found.is_sorted(), "{found:?}");
        let seen = found.iter().filter(|(_, sequence)| sequence.0 <= visible).count();
        assert_eq!(seen as u64, visible, "{found:?}");
        writer.join().unwrap();
    });
}
