//! Random lives of a few hashes under snapshots and compactions, against a model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::engine::Snapshot;

#[derive(Clone, Debug)]
enum Step {
    Add(u8, u32),
    Remove(u8, u32),
    Delete(u8),
    Overwrite(u8),
    Expire(u8, u64),
    Pass(u64),
    Snapshot,
    Forget(usize),
    Flush,
    Compact,
    Reclaim,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u8..4;
    let step = prop_oneof![
        6 => (key.clone(), 0u32..6).prop_map(|(key, member)| Step::Add(key, member)),
        3 => (key.clone(), 0u32..6).prop_map(|(key, member)| Step::Remove(key, member)),
        2 => key.clone().prop_map(Step::Delete),
        1 => key.clone().prop_map(Step::Overwrite),
        1 => (key, 1u64..40).prop_map(|(key, ms)| Step::Expire(key, ms)),
        1 => (1u64..20).prop_map(Step::Pass),
        2 => Just(Step::Snapshot),
        2 => any::<usize>().prop_map(Step::Forget),
        2 => Just(Step::Flush),
        2 => Just(Step::Compact),
        2 => Just(Step::Reclaim),
    ];
    prop::collection::vec(step, 1..80)
}

/// Members and expiry of each hash; a String is an empty one.
type Model = BTreeMap<u8, (BTreeSet<u32>, u64)>;

fn run(db: &Db, model: &mut Model, now: u64, step: &Step) {
    model.retain(|_, (_, expire_ms)| *expire_ms == 0 || *expire_ms > now);
    match *step {
        Step::Add(key, member) => {
            if model.get(&key).is_none_or(|(members, _)| !members.is_empty()) {
                add(db, &[key], member..member + 1);
                model.entry(key).or_default().0.insert(member);
            }
        }
        Step::Remove(key, member) => {
            db.write(&[&[key]], |tx| {
                let record = tx.record(&[key])?;
                if record.is_none_or(|record| record.header.kind == Type::String) {
                    return Ok(());
                }
                let mut hash = tx.collection(&[key], Type::Hash)?.unwrap();
                hash.remove(tx, &member.to_be_bytes())?;
                tx.save(hash)
            })
            .unwrap();
            if let Some((members, _)) = model.get_mut(&key)
                && members.remove(&member)
                && members.is_empty()
            {
                model.remove(&key);
            }
        }
        Step::Delete(key) => {
            db.del(&[&[key]]).unwrap();
            model.remove(&key);
        }
        Step::Overwrite(key) => {
            db.set(&[key], b"string").unwrap();
            model.insert(key, Default::default());
        }
        Step::Expire(key, ms) => {
            assert_eq!(expire_at(db, &[key], now + ms), model.contains_key(&key));
            if let Some((_, expire_ms)) = model.get_mut(&key) {
                *expire_ms = now + ms;
            }
        }
        Step::Flush => db.flush().unwrap(),
        Step::Compact => db.compact().unwrap(),
        Step::Reclaim => db.reclaim().unwrap(),
        Step::Pass(_) | Step::Snapshot | Step::Forget(_) => {}
    }
}

/// A reader finds all that the model has, and what it finds beyond that has expired.
fn compare(db: &Db, reader: &Reader, model: &Model) {
    let space = db.store().spaces().of(0).unwrap();
    for key in 0..4u8 {
        let record = reader.get(META, &meta_key(space, &[key])).unwrap();
        let Some((expected, expire_ms)) = model.get(&key) else {
            let header = record.map(|record| Header::decode(&record).unwrap());
            assert!(header.is_none_or(|it| it.expire_ms != 0), "{key} is gone");
            continue;
        };
        let record = record.unwrap();
        let header = Header::decode(&record).unwrap();
        assert_eq!(header.expire_ms, *expire_ms);
        if header.kind == Type::Hash {
            assert_eq!(members(db, reader, &[key]).as_ref(), Some(expected));
        } else {
            assert!(expected.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn no_reader_misses_a_row_and_nothing_is_left_at_the_end(steps in steps()) {
        let setting = Setting::new();
        let db = setting.open();
        let mut model = Model::new();
        let mut now = 500;
        let mut snapshots: Vec<(Snapshot, crate::keyspace::read_clock::RegisteredTime, Model)> = Vec::new();
        for step in &steps {
            run(&db, &mut model, now, step);
            match step {
                Step::Pass(ms) => {
                    now += ms;
                    setting.clock.set(now);
                }
                Step::Snapshot => {
                    let time = db.store().clock().register();
                    snapshots.push((db.store().engine().snapshot().unwrap(), time, model.clone()));
                }
                Step::Forget(at) if !snapshots.is_empty() => {
                    snapshots.swap_remove(at % snapshots.len());
                }
                Step::Compact | Step::Reclaim => {
                    for (snapshot, _, model) in &snapshots {
                        compare(&db, &snapshot.reader().unwrap(), model);
                    }
                }
                _ => {}
            }
            model.retain(|_, (_, expire_ms)| *expire_ms == 0 || *expire_ms > now);
            compare(&db, &db.store().engine().reader().unwrap(), &model);
        }
        prop_assert_eq!(db.check().unwrap(), Vec::<String>::new());
        drop(snapshots);
        db.compact().unwrap();
        let rows: usize = model.values().map(|(members, _)| members.len()).sum();
        prop_assert_eq!(all_entries(&db), [model.len() as u64, rows as u64, 0]);
        prop_assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}
