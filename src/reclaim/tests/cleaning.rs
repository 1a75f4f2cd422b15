//! The thread that deletes what has expired.

use super::*;

fn put_expiring(db: &Db, keys: std::ops::Range<u32>, expire_ms: u64) {
    for key in keys {
        db.write(&[&key.to_be_bytes()], |tx| {
            tx.put_string(&key.to_be_bytes(), b"value", expire_ms)
        })
        .unwrap();
    }
}

#[test]
fn expired_keys_are_deleted_in_batches_until_none_is_left() {
    let setting = Setting::new();
    let db = setting.open();
    put_expiring(&db, 0..5000, 1000);
    db.flush().unwrap();
    put_expiring(&db, 5000..10_000, 1000);
    put_expiring(&db, 10_000..10_010, 3000);
    db.set(b"for ever", b"v").unwrap();
    assert_eq!(db.clean_expired().unwrap(), 0);
    setting.clock.set(1000);
    let before = db.engine_stats().commits;
    assert_eq!(db.clean_expired().unwrap(), 10_000);
    let commits = db.engine_stats().commits - before;
    assert_eq!(commits, 10 * 1000u64.div_ceil(32), "a thousand found, thirty-two locked at once");
    assert_eq!(db.clean_expired().unwrap(), 0);
    db.compact().unwrap();
    assert_eq!(entries(&db, META), 11);
    setting.clock.set(3000);
    assert_eq!(db.clean_expired().unwrap(), 10);
    let cleaned = db.store().cleaner().cleaned();
    assert_eq!((cleaned.total, cleaned.last, cleaned.last_at_ms), (10_010, 10, 3000));
}

#[test]
fn keys_that_are_locked_together_share_stripes() {
    let setting = Setting::new();
    let db = setting.open();
    let space = db.store().spaces().of(0).unwrap();
    let keys: Vec<[u8; 4]> = (0..1000u32).map(u32::to_be_bytes).collect();
    let mut keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    db.store().sort_by_stripe(space, &mut keys);
    let seed = db.store().engine().hash_seed();
    let stripe = |key: &&[u8]| seed.hash(&meta_key(space, key)) % 256;
    for some in keys.chunks(32) {
        let stripes: BTreeSet<u64> = some.iter().map(stripe).collect();
        assert!(stripes.len() <= 16, "{} of 256 stripes for 32 keys", stripes.len());
    }
}

#[test]
fn keys_of_every_database_are_deleted() {
    let setting = Setting::new();
    let db = setting.open();
    for number in [0, 7, 15] {
        put_expiring(&db.select(number).unwrap(), 0..10, 600);
    }
    setting.clock.set(600);
    assert_eq!(db.clean_expired().unwrap(), 30);
}

#[test]
fn a_table_is_not_read_again_before_more_of_it_has_expired() {
    let setting = Setting::new();
    let db = setting.open();
    put_expiring(&db, 0..100, 1000);
    put_expiring(&db, 100..200, 2000);
    db.flush().unwrap();
    let reads = || db.engine_stats().trees[META.index()].block_reads;
    let round = || {
        let before = reads();
        (db.clean_expired().unwrap(), reads() - before)
    };
    assert_eq!(round(), (0, 0), "nothing has expired");
    setting.clock.set(1500);
    let (deleted, read) = round();
    assert!(deleted == 100 && read > 0);
    db.flush().unwrap();
    // The deletes are merged with what they delete: not while the clock is set.
    db.store().engine().wait_idle().unwrap();
    assert_eq!(round(), (0, 0), "it was walked");
    setting.clock.set(2000);
    let (deleted, read) = round();
    assert!(deleted == 100 && read > 0);
}

/// A round that looked before someone wrote the key again, and deletes after.
#[test]
fn a_key_that_was_written_again_meanwhile_stays() {
    let setting = Setting::new();
    let db = setting.open();
    put_expiring(&db, 0..3, 1000);
    let key = |n: u32| n.to_be_bytes();
    db.del(&[&key(2)]).unwrap();
    setting.clock.set(1000);
    db.set(&key(1), b"new").unwrap();
    let found = [key(0), key(1), key(2)];
    let found: Vec<&[u8]> = found.iter().map(|key| &key[..]).collect();
    assert_eq!(db.store().delete_expired(0, &found).unwrap(), 1);
    assert_eq!(db.get(&key(1)).unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn what_was_recovered_from_the_log_is_found() {
    let setting = Setting::new();
    let db = setting.open();
    put_expiring(&db, 0..10, 1000);
    drop(db);
    let db = setting.open();
    setting.clock.set(1000);
    assert_eq!(db.clean_expired().unwrap(), 10);
}

#[test]
fn a_store_that_never_expires_anything_is_not_scanned() {
    let setting = Setting::new();
    let db = setting.open();
    db.clean_expired().unwrap();
    put_expiring(&db, 0..10, 0);
    let round = || db.store().cleaner().soonest();
    assert_eq!(round(), u64::MAX);
    put_expiring(&db, 10..20, 700);
    assert_eq!(round(), 700);
}

#[test]
fn the_thread_deletes_by_itself() {
    let mut setting = Setting::new();
    setting.options.ttl_cleaner_interval_s = 1;
    setting.options.ttl_cleaner_batch = 10;
    let db = setting.open();
    put_expiring(&db, 0..35, 1000);
    setting.clock.set(1000);
    until("no round came", || db.store().cleaner().cleaned().total == 35);
    db.close().unwrap();
}

#[test]
fn a_close_and_the_last_handle_wake_the_thread_at_once() {
    let mut setting = Setting::new();
    setting.options.ttl_cleaner_interval_s = 86_400;
    let begun = Instant::now();
    let db = setting.open();
    db.close().unwrap();
    db.close().unwrap();
    drop(db);
    let db = setting.open();
    let store = Arc::downgrade(db.shared_store());
    drop(db);
    assert!(store.upgrade().is_none());
    assert!(begun.elapsed() < Duration::from_secs(30), "someone waited for the interval");
}
