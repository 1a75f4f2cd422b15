//! Databases that were emptied.

use super::*;
use crate::keyspace::spaces::Spaces;

#[test]
fn an_emptied_database_gives_back_everything_once_no_snapshot_sees_it() {
    let setting = Setting::new();
    let db = setting.open();
    let neighbour = db.select(1).unwrap();
    add(&db, b"h", 0..10);
    add(&neighbour, b"h", 0..20);
    db.set(b"s", b"v").unwrap();
    let snapshot = db.store().engine().snapshot().unwrap();
    db.flushdb().unwrap();
    add(&db, b"h", 0..3);
    db.compact().unwrap();
    assert_eq!(entries(&db, DATA), 33, "the snapshot still sees it");
    drop(snapshot);
    db.compact().unwrap();
    let of_the_store = 2;
    assert_eq!(all_entries(&db), [of_the_store + 2, 23, 0]);
    db.flushdb().unwrap();
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [of_the_store + 1, 20, 0]);
    db.close().unwrap();
    let db = setting.open();
    assert_eq!(db.exists(&[b"h", b"s"]).unwrap(), 0);
    assert_eq!(db.select(1).unwrap().exists(&[b"h"]).unwrap(), 1);
    sound(&db);
}

/// A filter that took only the numbers of this open for alive would empty the others.
#[test]
fn databases_beyond_the_number_of_this_open_are_left_alone() {
    let mut setting = Setting::new();
    let db = setting.open();
    let far = db.select(15).unwrap();
    add(&far, b"old", 0..5);
    db.select(14).unwrap().flushdb().unwrap();
    add(&db.select(14).unwrap(), b"new", 0..5);
    db.flushdb().unwrap();
    db.close().unwrap();
    setting.options.databases = 2;
    let db = setting.open();
    add(&db, b"h", 0..1);
    db.flushdb().unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    setting.options.databases = 16;
    let db = setting.open();
    assert_eq!(db.select(15).unwrap().exists(&[b"old"]).unwrap(), 1);
    assert_eq!(db.select(14).unwrap().exists(&[b"new"]).unwrap(), 1);
    assert_eq!(entries(&db, DATA), 10);
    sound(&db);
}

/// After the commit that empties a database, readers use the old space until commands see the new
/// one.
#[test]
fn a_space_that_commands_still_use_is_not_dead() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..10);
    let spaces = db.store().spaces();
    let fresh = db
        .write_alone(|tx| {
            let (space, counter, next) = spaces.fresh(&[])?;
            tx.put_row(META, &counter, next.to_vec());
            let (record, id) = Spaces::assignment(0, space);
            tx.put_row(META, &record, id.to_vec());
            Ok(space)
        })
        .unwrap();
    db.compact().unwrap();
    assert_eq!(members_now(&db, b"h").unwrap().len(), 10);
    spaces.assign(0, fresh);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [2, 0, 0]);
}
