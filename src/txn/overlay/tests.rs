//! Pending writes: savepoints, weights, limits, what is told about them.

use super::*;
use crate::encoding::keys::{prefix, row_key};
use crate::engine::EntryKind;

fn shown(overlay: &Overlay) -> Vec<(usize, Vec<u8>, PendingWrite)> {
    let trees = overlay.writes.iter().enumerate();
    trees
        .flat_map(|(tree, writes)| {
            let pending = writes.iter().flat_map(Writes::iter);
            pending.map(move |(key, write)| (tree, key.clone(), write.clone()))
        })
        .collect()
}

#[test]
fn going_back_to_a_mark_leaves_what_was_before_it_and_nothing_else() {
    let mut overlay = Overlay::default();
    overlay.write(META, b"a", Some(Bytes::from("1")));
    overlay.write(DATA, b"b", None);
    let (before, bytes) = (shown(&overlay), overlay.bytes);
    let outer = overlay.savepoint();
    overlay.write(META, b"a", None);
    let inner = overlay.savepoint();
    overlay.write(META, b"a", Some(Bytes::from("22")));
    overlay.write(SCORE, b"c", Some(Bytes::new()));
    overlay.assignments.push((1, Space::FIRST_FRESH));
    overlay.rollback_to(&inner);
    assert_eq!(overlay.row(META, b"a"), Some(&None));
    overlay.write(DATA, b"b", Some(Bytes::from("x")));
    overlay.rollback_to(&outer);
    assert_eq!((shown(&overlay), overlay.bytes), (before, bytes));
    assert!(overlay.assignments.is_empty() && overlay.undo.is_empty());
}

#[test]
fn a_row_that_is_written_several_times_weighs_what_all_of_it_changes() {
    use EntryKind::{Delete, DeletePresent, Put, PutAbsent};
    let value = || Some(Bytes::from("v"));
    let mut overlay = Overlay::default();
    // Rows that were there: `a` is removed and comes back, `b` is overwritten and removed. Rows
    // that were not: `c` comes, goes and comes, `d` comes and goes.
    for (row, value, weight) in [
        (b"a", None, -1),
        (b"a", value(), 1),
        (b"b", value(), 0),
        (b"b", None, -1),
        (b"c", value(), 1),
        (b"c", None, -1),
        (b"c", value(), 1),
        (b"d", value(), 1),
        (b"d", None, -1),
    ] {
        overlay.write_counted(DATA, row, value, weight);
    }
    let kinds = |overlay: &Overlay| -> Vec<_> {
        let batch = overlay.batch();
        batch.operations().map(|operation| operation.unwrap().kind).collect()
    };
    let before = [Put, DeletePresent, PutAbsent, Delete];
    assert_eq!(kinds(&overlay), before);
    let savepoint = overlay.savepoint();
    overlay.write_counted(DATA, b"a", None, -1);
    overlay.write_counted(DATA, b"b", value(), 1);
    overlay.write_counted(DATA, b"c", None, -1);
    overlay.write_counted(DATA, b"d", value(), 1);
    assert_eq!(kinds(&overlay), [DeletePresent, Put, Delete, PutAbsent]);
    overlay.rollback_to(&savepoint);
    assert_eq!(kinds(&overlay), before);
}

#[test]
fn past_the_limit_nothing_is_kept_and_going_back_makes_room_again() {
    let mut overlay = Overlay::tracking(1000);
    let savepoint = overlay.savepoint();
    for n in 0..100u8 {
        overlay.write(META, &[n], Some(Bytes::from(vec![0; 100])));
    }
    assert!(overlay.is_too_large() && overlay.bytes <= 1000);
    overlay.rollback_to(&savepoint);
    assert!(!overlay.is_too_large() && !overlay.is_dirty());
    overlay.write(META, b"k", Some(Bytes::new()));
    assert!(!overlay.is_too_large() && overlay.is_dirty());
}

#[test]
fn several_commands_free_space_if_each_that_writes_does() {
    let mut overlay = Overlay::default();
    let mut command = |key: Option<&[u8]>, frees: bool, keep: bool| {
        let savepoint = overlay.savepoint();
        overlay.frees_space |= frees;
        key.into_iter().for_each(|key| overlay.write(META, key, None));
        match keep {
            true => overlay.release(&savepoint),
            false => overlay.rollback_to(&savepoint),
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
            let savepoint = overlay.savepoint();
            for n in (0..after).filter(|n| *n >= before || n % 3 == 0) {
                overlay.write(DATA, &name(n), value(n + 1));
                assert_eq!(overlay.get(DATA, &name(n)), Some(&value(n + 1)));
            }
            overlay.write(DATA, &name(0), None);
            assert_eq!(overlay.get(DATA, &name(0)), Some(&None));
            overlay.rollback_to(&savepoint);
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
        self.of(tree)?.get(key).map(|write| &write.value)
    }
}
