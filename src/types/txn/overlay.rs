//! Writes kept aside: what a command, a transaction or EXEC has written so far and nobody else
//! sees.
//!
//! It outlives the [`Tx`](super::Tx) that fills it: a transaction lends it to one command after
//! another. A command that fails leaves no trace: while a mark is set, every write notes what it
//! replaced, and going back to the mark puts that in place again.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;

use bytes::Bytes;

use super::seen::Seen;
use super::touched::Touched;
use super::{DATA, META, SCORE};
use crate::encoding::keys::{Prefix, Space, meta_key, split_row_key};
use crate::encoding::meta::Header;
use crate::engine::{Batch, ReservedNumber, TreeId};

pub(super) type Writes = BTreeMap<Vec<u8>, Option<Bytes>>;

/// What an entry takes in memory beside its bytes, about.
const ENTRY_BYTES: usize = 64;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Overlay {
    writes: [Writes; 3],
    /// Which keys those may hold.
    seen: [Seen; 3],
    /// Versions of collections made here: compactions leave their rows alone until the record
    /// that names them is visible.
    pub(super) building: Vec<ReservedNumber>,
    /// What rows of such versions begin with that were written already: see `build`.
    pub(super) spilled: Vec<Prefix>,
    /// Keys may come or go, or have another expiry: something in the meta tree was written that is
    /// not the record of a key in place of one with the same expiry.
    changes_keys: bool,
    /// The command that writes now, or one before it, gives back space.
    pub(super) frees_space: bool,
    /// A command has written and does not give back space.
    pub(super) takes_space: bool,
    /// Databases this empties or swaps, in order: in force for others once it is committed.
    pub(super) assignments: Vec<(u32, Space)>,
    /// Spaces from this id on were first used here: nobody else can change a key in them.
    pub(super) own_spaces_from: u32,
    /// The keys read and written, if somebody wants to know.
    pub(super) touched: Option<Box<RefCell<Touched>>>,
    /// What was replaced since the first mark.
    replaced: Vec<Replaced>,
    /// The keys of that, one after the other.
    replaced_keys: Vec<u8>,
    marks: u32,
    bytes: usize,
    most_bytes: usize,
    /// Something did not fit: what is here is not what was written.
    overflowed: bool,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            writes: Default::default(),
            seen: Default::default(),
            building: Vec::new(),
            spilled: Vec::new(),
            changes_keys: false,
            frees_space: false,
            takes_space: false,
            assignments: Vec::new(),
            own_spaces_from: u32::MAX,
            touched: None,
            replaced: Vec::new(),
            replaced_keys: Vec::new(),
            marks: 0,
            bytes: 0,
            most_bytes: usize::MAX,
            overflowed: false,
        }
    }
}

#[derive(Debug)]
struct Replaced {
    tree: TreeId,
    /// Where its key begins in `replaced_keys`; it ends where the next one begins.
    key_at: usize,
    /// `None` if the key was not kept aside.
    by: Option<Option<Bytes>>,
}

/// A state to go back to.
#[derive(Debug)]
pub(super) struct Mark {
    replaced: usize,
    building: usize,
    assignments: usize,
    changes_keys: bool,
    frees_space: bool,
    takes_space: bool,
    bytes: usize,
    overflowed: bool,
}

fn cost(key: &[u8], value: Option<&Bytes>) -> usize {
    ENTRY_BYTES + key.len() + value.map_or(0, Bytes::len)
}

impl Overlay {
    /// One that notes the keys read and written, and takes about so many bytes.
    pub(crate) fn tracking(most_bytes: usize) -> Self {
        Self { touched: Some(Box::default()), most_bytes, ..Self::default() }
    }

    pub(super) fn of(&self, tree: TreeId) -> Option<&Writes> {
        self.writes.get(tree.index())
    }

    /// What is kept aside of a physical key; a removal is `Some(None)`.
    #[inline]
    pub(super) fn get(&self, tree: TreeId, key: &[u8]) -> Option<&Option<Bytes>> {
        let (writes, seen) = (self.of(tree)?, self.seen.get(tree.index())?);
        if seen.may_hold(key, writes.len()) { writes.get(key) } else { None }
    }

    /// Sets or removes a physical key. Past the limit nothing more is kept: the command that
    /// writes so much is going to fail.
    pub(super) fn write(&mut self, tree: TreeId, key: &[u8], value: Option<Bytes>) {
        self.changes_keys |= tree == META;
        self.keep_aside(tree, key, value);
    }

    /// Sets the record of a key that has one, with the same expiry.
    pub(super) fn replace_record(&mut self, key: &[u8], record: Bytes) {
        self.keep_aside(META, key, Some(record));
    }

    fn keep_aside(&mut self, tree: TreeId, key: &[u8], value: Option<Bytes>) {
        let cost_of_new = cost(key, value.as_ref());
        let trees = (self.writes.get_mut(tree.index()), self.seen.get_mut(tree.index()));
        let (Some(writes), Some(seen)) = trees else { return };
        if self.bytes.saturating_add(cost_of_new) > self.most_bytes {
            self.overflowed = true;
            return;
        }
        let place = if seen.may_hold(key, writes.len()) { writes.get_mut(key) } else { None };
        let old = match place {
            Some(place) => Some(std::mem::replace(place, value)),
            None => {
                seen.note(key, writes.keys().map(Vec::as_slice));
                writes.insert(key.to_vec(), value)
            }
        };
        let cost_of_old = old.as_ref().map_or(0, |old| cost(key, old.as_ref()));
        self.bytes = (self.bytes + cost_of_new).saturating_sub(cost_of_old);
        if self.marks > 0 {
            self.replaced.push(Replaced { tree, key_at: self.replaced_keys.len(), by: old });
            self.replaced_keys.extend_from_slice(key);
        }
    }

    /// Whether more was written, or more keys touched, than there is room for.
    pub(super) fn is_too_large(&self) -> bool {
        let touched = self.touched.as_ref().map_or(0, |touched| touched.borrow().bytes());
        self.overflowed || self.bytes.saturating_add(touched) > self.most_bytes
    }

    pub(super) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Until this mark is released or gone back to, what is replaced is remembered.
    pub(super) fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark {
            replaced: self.replaced.len(),
            building: self.building.len(),
            assignments: self.assignments.len(),
            changes_keys: self.changes_keys,
            frees_space: std::mem::take(&mut self.frees_space),
            takes_space: self.takes_space,
            bytes: self.bytes,
            overflowed: self.overflowed,
        }
    }

    /// What was written since the mark stays.
    pub(super) fn keep(&mut self, mark: &Mark) {
        let wrote = self.replaced.len() > mark.replaced;
        self.takes_space |= wrote && !self.frees_space;
        self.frees_space |= mark.frees_space;
        self.release();
    }

    fn release(&mut self) {
        self.marks = self.marks.saturating_sub(1);
        if self.marks == 0 {
            self.replaced.clear();
            self.replaced_keys.clear();
        }
    }

    /// Everything is again as it was at the mark; the keys touched since remain noted, since what
    /// they held was seen.
    pub(super) fn go_back(&mut self, mark: &Mark) {
        while self.replaced.len() > mark.replaced {
            let Some(Replaced { tree, key_at, by }) = self.replaced.pop() else { break };
            let key = self.replaced_keys.split_off(key_at);
            let Some(writes) = self.writes.get_mut(tree.index()) else { continue };
            match by {
                Some(old) => writes.insert(key, old),
                None => writes.remove(&key),
            };
        }
        self.building.truncate(mark.building);
        self.assignments.truncate(mark.assignments);
        (self.frees_space, self.takes_space) = (mark.frees_space, mark.takes_space);
        self.changes_keys = mark.changes_keys;
        self.bytes = mark.bytes;
        self.overflowed = mark.overflowed;
        self.release();
    }

    /// Bytes that are kept aside, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether anything is to be committed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.writes.iter().any(|writes| !writes.is_empty())
    }

    /// On a full disk this may use the space set aside for what frees some: of several commands
    /// all must.
    pub(crate) fn frees_space(&self) -> bool {
        self.frees_space && !self.takes_space
    }

    /// Databases that are emptied or swapped, in order.
    pub(crate) fn assignments(&self) -> &[(u32, Space)] {
        &self.assignments
    }

    /// The keys read and written, if they are noted.
    pub(crate) fn touched(&self) -> Option<Ref<'_, Touched>> {
        self.touched.as_ref().map(|touched| touched.borrow())
    }

    /// The earliest expiry among the records written.
    pub(crate) fn soonest_expiry(&self) -> Option<u64> {
        let records = self.of(META)?.values().flatten();
        let headers = records.filter_map(|record| Header::decode(record).ok());
        headers.map(|header| header.expire_ms).filter(|expire_ms| *expire_ms != 0).min()
    }

    /// The writes as a batch.
    pub(crate) fn batch(&self) -> Batch {
        let mut batch = Batch::with_capacity(self.bytes);
        for (tree, writes) in (0u8..).zip(&self.writes) {
            for (key, value) in writes {
                match value {
                    Some(value) => batch.put(TreeId(tree), key, value),
                    None => batch.delete(TreeId(tree), key),
                }
            }
        }
        if !self.changes_keys {
            batch.only_replaces(META);
        }
        batch
    }

    /// The meta key of every user key that is changed, some more than once. Records of the store
    /// itself are left out.
    pub(crate) fn changed_keys(&self, mut visit: impl FnMut(&[u8])) {
        let reserved = Space::RESERVED.to_bytes();
        let records = self.of(META).into_iter().flat_map(Writes::keys);
        records.filter(|key| !key.starts_with(&reserved)).for_each(|key| visit(key));
        for tree in [DATA, SCORE] {
            // Rows of one collection are neighbours.
            let mut last: &[u8] = &[];
            for key in self.of(tree).into_iter().flat_map(Writes::keys) {
                if !last.is_empty() && key.starts_with(last) {
                    continue;
                }
                if let Some(row) = split_row_key(key) {
                    last = key.get(..key.len() - row.sub_key.len()).unwrap_or_default();
                    visit(&meta_key(row.space, &row.user_key));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::keys::{prefix, row_key};

    fn shown(overlay: &Overlay) -> Vec<(usize, Vec<u8>, Option<Bytes>)> {
        let trees = overlay.writes.iter().enumerate();
        trees
            .flat_map(|(tree, writes)| {
                writes.iter().map(move |(key, value)| (tree, key.clone(), value.clone()))
            })
            .collect()
    }

    #[test]
    fn going_back_to_a_mark_leaves_what_was_before_it_and_nothing_else() {
        let mut overlay = Overlay::default();
        overlay.write(META, b"a", Some(Bytes::from("1")));
        overlay.write(DATA, b"b", None);
        let (before, bytes) = (shown(&overlay), overlay.bytes);
        let outer = overlay.mark();
        overlay.write(META, b"a", None);
        let inner = overlay.mark();
        overlay.write(META, b"a", Some(Bytes::from("22")));
        overlay.write(SCORE, b"c", Some(Bytes::new()));
        overlay.assignments.push((1, Space::FIRST_FRESH));
        overlay.go_back(&inner);
        assert_eq!(overlay.row(META, b"a"), Some(&None));
        overlay.write(DATA, b"b", Some(Bytes::from("x")));
        overlay.go_back(&outer);
        assert_eq!((shown(&overlay), overlay.bytes), (before, bytes));
        assert!(overlay.assignments.is_empty() && overlay.replaced.is_empty());
    }

    #[test]
    fn past_the_limit_nothing_is_kept_and_going_back_makes_room_again() {
        let mut overlay = Overlay::tracking(1000);
        let mark = overlay.mark();
        for n in 0..100u8 {
            overlay.write(META, &[n], Some(Bytes::from(vec![0; 100])));
        }
        assert!(overlay.is_too_large() && overlay.bytes <= 1000);
        overlay.go_back(&mark);
        assert!(!overlay.is_too_large() && !overlay.is_dirty());
        overlay.write(META, b"k", Some(Bytes::new()));
        assert!(!overlay.is_too_large() && overlay.is_dirty());
    }

    #[test]
    fn several_commands_free_space_if_each_that_writes_does() {
        let mut overlay = Overlay::default();
        let mut command = |key: Option<&[u8]>, frees: bool, keep: bool| {
            let mark = overlay.mark();
            overlay.frees_space |= frees;
            key.into_iter().for_each(|key| overlay.write(META, key, None));
            match keep {
                true => overlay.keep(&mark),
                false => overlay.go_back(&mark),
            }
            overlay.frees_space()
        };
        assert!(!command(None, false, true));
        assert!(command(Some(b"a"), true, true));
        assert!(command(None, false, true), "a read takes nothing");
        assert!(command(Some(b"b"), false, false), "it was taken back");
        assert!(!command(Some(b"b"), false, true));
        assert!(!command(Some(b"a"), true, true));
    }

    #[test]
    fn every_user_key_that_is_changed_is_named() {
        let mut overlay = Overlay::default();
        let space = Space::of_database(3);
        overlay.write(META, &meta_key(space, b"string"), None);
        overlay.write(META, &meta_key(Space::RESERVED, b"next"), None);
        for member in [&b""[..], b"m", b"n"] {
            overlay.write(DATA, &row_key(&prefix(space, b"ha\0sh", 7), member), None);
            overlay.write(DATA, &row_key(&prefix(space, b"ha", 7), member), None);
            overlay.write(SCORE, &row_key(&prefix(space, b"z", 9), member), None);
        }
        let mut named = Vec::new();
        overlay.changed_keys(|key| named.push(key.to_vec()));
        let expected = [&b"string"[..], b"ha", b"ha\0sh", b"z"];
        assert_eq!(named, expected.map(|key| meta_key(space, key).to_vec()));
    }

    /// The bits that tell which keys may be there know of more keys than there are after going
    /// back, and of none beyond a number.
    #[test]
    fn every_key_is_found_after_going_back_however_many_there_were() {
        let name = |n: u32| format!("a long beginning that all have {n}").into_bytes();
        let value = |n: u32| Some(Bytes::from(n.to_string()));
        for (before, after) in [(3, 40), (20, 60), (300, 2000), (1000, 3000), (2100, 4000)] {
            let mut overlay = Overlay::default();
            (0..before).for_each(|n| overlay.write(DATA, &name(n), value(n)));
            for _ in 0..2 {
                let mark = overlay.mark();
                for n in (0..after).filter(|n| *n >= before || n % 3 == 0) {
                    overlay.write(DATA, &name(n), value(n + 1));
                    assert_eq!(overlay.get(DATA, &name(n)), Some(&value(n + 1)));
                }
                overlay.write(DATA, &name(0), None);
                assert_eq!(overlay.get(DATA, &name(0)), Some(&None));
                overlay.go_back(&mark);
                for n in 0..after {
                    let expected = Some(value(n)).filter(|_| n < before);
                    assert_eq!(overlay.get(DATA, &name(n)), expected.as_ref(), "{n} of {before}");
                }
            }
            (before..after).for_each(|n| overlay.write(DATA, &name(n), value(n)));
            for n in 0..after {
                assert_eq!(overlay.get(DATA, &name(n)), Some(&value(n)), "{n} of {after}");
            }
            assert_eq!(overlay.get(DATA, &name(after)), None);
            assert_eq!(overlay.of(DATA).map(Writes::len), usize::try_from(after).ok());
        }
    }

    impl Overlay {
        fn row(&self, tree: TreeId, key: &[u8]) -> Option<&Option<Bytes>> {
            self.of(tree)?.get(key)
        }
    }
}
