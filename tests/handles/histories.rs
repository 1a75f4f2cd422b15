//! What threads see of each other on single keys, and on several by transactions, sessions,
//! batches and snapshots, can be told as one thing after the other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, ErrorKind, Reply, Result};

use super::checker::{Action, KEYS, Operation, State, explains};
use super::flushes::slow_device;
use super::{number, say};

const THREADS: u64 = 4;
const OPERATIONS: usize = 7;

fn key(n: usize) -> String {
    format!("key{n}")
}

fn value(bytes: Option<bytes::Bytes>) -> Option<i64> {
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).parse().unwrap())
}

fn run(db: &Db, n: usize, action: Action) -> Result<Option<i64>> {
    let name = key(n);
    let name = name.as_bytes();
    Ok(match action {
        Action::Get => value(db.get(name)?),
        Action::Set(new) => db.set(name, new.to_string().as_bytes()).map(|()| Some(new))?,
        Action::Add(delta) => Some(db.incrby(name, delta)?),
        Action::Delete => Some(db.del(&[name])?),
        Action::SetNew(new) => Some(db.setnx(name, new.to_string().as_bytes())?.into()),
        Action::After(other) => {
            let new = value(db.get(key(other).as_bytes())?).unwrap_or(0) + 1;
            db.set(name, new.to_string().as_bytes()).map(|()| Some(new))?
        }
    })
}

fn all(db: &Db, actions: &[(usize, Action)]) -> Result<Vec<Option<i64>>> {
    actions.iter().map(|(n, action)| run(db, *n, *action)).collect()
}

/// By MULTI and EXEC. There is no After: it would read at another point in time.
fn exec(db: &Db, actions: &[(usize, Action)]) -> Vec<Option<i64>> {
    let mut session = db.session();
    say(&mut session, "MULTI");
    for (n, action) in actions {
        let name = key(*n);
        say(
            &mut session,
            &match action {
                Action::Get => format!("GET {name}"),
                Action::Set(new) => format!("SET {name} {new}"),
                Action::Add(delta) => format!("INCRBY {name} {delta}"),
                Action::Delete => format!("DEL {name}"),
                Action::SetNew(new) => format!("SETNX {name} {new}"),
                Action::After(_) => unreachable!(),
            },
        );
    }
    let Reply::Array(replies) = say(&mut session, "EXEC") else { panic!("EXEC failed") };
    let answer = |(reply, (_, action)): (Reply, &(usize, Action))| match (reply, action) {
        (_, Action::Set(new)) => Some(*new),
        (Reply::Int(number), _) => Some(number),
        (Reply::Bulk(bytes), _) => value(Some(bytes)),
        _ => None,
    };
    replies.into_iter().zip(actions).map(answer).collect()
}

/// What a thread does next. `None` for what conflicted: it must have had no effect.
fn attempt(db: &Db, random: &mut SplitMix64, keys: u64) -> Option<Operation> {
    let how = random.below(6);
    let single = how < 2 || keys == 1 && how < 4;
    let count = if single { 1 } else { 1 + random.below(3) };
    let mut actions: Vec<(usize, Action)> = (0..count)
        .map(|_| {
            let action = match random.below(6) {
                0 | 1 => Action::Get,
                2 => Action::Set(random.below(1000) as i64),
                3 => Action::Add(1 + random.below(3) as i64),
                4 => Action::Delete,
                _ if how == 3 && !single => Action::After(random.below(keys) as usize),
                _ => Action::SetNew(random.below(1000) as i64),
            };
            (random.below(keys) as usize, action)
        })
        .collect();
    if how == 5 {
        actions.iter_mut().for_each(|(_, action)| *action = Action::Get);
    }
    let called = NOW.fetch_add(1, Ordering::SeqCst);
    let answers = match how {
        _ if single => all(db, &actions).unwrap(),
        3 => {
            let txn = db.begin().unwrap();
            let answers = all(&txn, &actions).unwrap();
            match txn.commit() {
                Ok(()) => answers,
                Err(error) if error.kind() == ErrorKind::Conflict => return None,
                Err(error) => panic!("{error:?}"),
            }
        }
        5 => all(&db.snapshot().unwrap(), &actions).unwrap(),
        _ => exec(db, &actions),
    };
    let returned = NOW.fetch_add(1, Ordering::SeqCst);
    Some(Operation { called, returned, actions, answers })
}

static NOW: AtomicU64 = AtomicU64::new(0);

/// What threads did, and what was left.
fn history(seed: u64, keys: u64) -> (Vec<Operation>, State) {
    // While one waits for the device, others run.
    let db = slow_device(Duration::from_micros(100));
    let (told, start) = (Mutex::new(Vec::new()), Barrier::new(THREADS as usize));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, told, start) = (&db, &told, &start);
            scope.spawn(move || {
                let mut random = SplitMix64::new(seed * THREADS + thread);
                start.wait();
                for _ in 0..OPERATIONS {
                    let operation = attempt(db, &mut random, keys);
                    told.lock().unwrap().extend(operation);
                    if random.one_in(3) {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    let last = std::array::from_fn(|n| value(db.get(key(n).as_bytes()).unwrap()));
    assert_eq!(db.check().unwrap(), [""; 0], "seed {seed}");
    (told.into_inner().unwrap(), last)
}

fn check(keys: u64) {
    let (mut overlaps, mut histories) = (0, 0);
    for seed in 0..number("LSMKV_HISTORIES", 100) {
        let (history, last) = history(seed, keys);
        overlaps += usize::from(
            history
                .iter()
                .any(|a| history.iter().any(|b| a.called < b.called && b.called < a.returned)),
        );
        histories += 1;
        assert!(explains(&history, last), "seed {seed} of {keys} keys, {last:?}: {history:#?}");
    }
    assert!(overlaps * 4 > histories, "the threads hardly ever met: {overlaps} of {histories}");
}

#[test]
fn operations_on_one_key_happen_one_after_the_other() {
    check(1);
}

#[test]
fn operations_on_several_keys_happen_one_after_the_other() {
    check(KEYS as u64);
}
