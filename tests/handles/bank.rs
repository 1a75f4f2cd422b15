//! A bank: money goes from account to account, in every way that several keys can be changed
//! together, and none is ever made or lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Db, ErrorKind, Reply, Result, Session};

use super::{Ends, integer, memory, say};

/// Few, so that transfers meet.
pub(crate) const ACCOUNTS: u64 = 6;
pub(crate) const TOTAL: i64 = 600;

pub(crate) fn account(n: u64) -> String {
    format!("account:{n}")
}

/// Opens the accounts.
pub(crate) fn found(db: &Db) {
    let each = (TOTAL / ACCOUNTS as i64).to_string();
    let names: Vec<String> = (0..ACCOUNTS).map(account).collect();
    let pairs: Vec<(&[u8], &[u8])> =
        names.iter().map(|name| (name.as_bytes(), each.as_bytes())).collect();
    db.mset(&pairs).unwrap();
}

/// The sum of all accounts, as this handle sees them.
pub(crate) fn total(db: &Db) -> i64 {
    (0..ACCOUNTS).map(|n| integer(db, account(n).as_bytes())).sum()
}

/// A transfer that was decided on.
struct Transfer {
    from: String,
    to: String,
    amount: i64,
    /// Counts the transfers of a thread, in the same commit.
    count: String,
}

impl Transfer {
    fn random(random: &mut SplitMix64, thread: usize) -> Self {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        Self {
            from: account(from),
            to: account(to),
            amount: 1 + i64::try_from(random.below(20)).unwrap(),
            count: format!("count:{thread}"),
        }
    }

    /// Reads, decides, writes.
    fn run(&self, txn: &Db) -> Result<()> {
        let (from, to) = (self.from.as_bytes(), self.to.as_bytes());
        let (rich, poor) = (integer(txn, from), integer(txn, to));
        if rich >= self.amount {
            txn.set(from, (rich - self.amount).to_string().as_bytes())?;
            txn.set(to, (poor + self.amount).to_string().as_bytes())?;
        }
        txn.hincrby(b"counts", self.count.as_bytes(), 1)?;
        txn.incr(self.count.as_bytes()).map(drop)
    }

    /// By WATCH, MULTI and EXEC; whether it was done.
    fn exec(&self, session: &mut Session) -> bool {
        let Self { from, to, amount, count } = self;
        say(session, &format!("WATCH {from} {to}"));
        let (rich, poor) =
            (integer(session.db(), from.as_bytes()), integer(session.db(), to.as_bytes()));
        say(session, "MULTI");
        if rich >= *amount {
            say(session, &format!("SET {from} {}", rich - amount));
            say(session, &format!("SET {to} {}", poor + amount));
        }
        say(session, &format!("HINCRBY counts {count} 1"));
        say(session, &format!("INCR {count}"));
        say(session, "EXEC") != Reply::NilArray
    }

    /// By a batch, which cannot decide: accounts may go below zero.
    fn batch(&self, db: &Db) -> Result<()> {
        let mut batch = db.batch();
        let amount = self.amount.to_string();
        batch.command(&[b"DECRBY", self.from.as_bytes(), amount.as_bytes()])?;
        batch.command(&[b"INCRBY", self.to.as_bytes(), amount.as_bytes()])?;
        batch.command(&[b"HINCRBY", b"counts", self.count.as_bytes(), b"1"])?;
        batch.command(&[b"INCR", self.count.as_bytes()])?;
        batch.commit()
    }
}

/// Makes one transfer, however often that has to be tried; how many attempts conflicted.
pub(crate) fn transfer(db: &Db, random: &mut SplitMix64, thread: usize) -> u64 {
    let transfer = Transfer::random(random, thread);
    let mut conflicts = 0;
    match thread % 4 {
        0 => db.transact(|txn| transfer.run(txn)).unwrap(),
        1 => {
            let mut session = db.session();
            while !transfer.exec(&mut session) {
                conflicts += 1;
            }
        }
        2 => transfer.batch(db).unwrap(),
        _ => loop {
            let txn = db.begin().unwrap();
            transfer.run(&txn).unwrap();
            // Others get a turn while it is open: on a busy machine with few cores each thread
            // would be done before the next begins.
            std::thread::yield_now();
            match txn.commit() {
                Ok(()) => break,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
            }
            conflicts += 1;
        },
    }
    conflicts
}

#[test]
fn no_money_is_made_or_lost_and_no_update_either() {
    const THREADS: usize = 8;
    const TRANSFERS: u64 = 150;
    let db = memory();
    found(&db);
    let (over, conflicts, checks) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        let bank: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (db, conflicts) = (&db, &conflicts);
                scope.spawn(move || {
                    let mut random = SplitMix64::new(thread as u64);
                    for _ in 0..TRANSFERS {
                        let met = transfer(db, &mut random, thread);
                        conflicts.fetch_add(met, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(total(&db.snapshot().unwrap()), TOTAL);
                let txn = db.begin().unwrap();
                assert_eq!(total(&txn), TOTAL);
                txn.rollback().unwrap();
                checks.fetch_add(1, Ordering::Relaxed);
            }
        });
        bank.into_iter().for_each(|thread| thread.join().unwrap());
    });
    assert_eq!(total(&db), TOTAL);
    for thread in 0..THREADS {
        let count = format!("count:{thread}");
        assert_eq!(integer(&db, count.as_bytes()), TRANSFERS as i64, "lost updates");
        let other = db.hget(b"counts", count.as_bytes()).unwrap();
        assert_eq!(other.as_deref(), Some(TRANSFERS.to_string().as_bytes()));
    }
    assert!(conflicts.load(Ordering::Relaxed) > 0, "the transfers never met");
    assert!(checks.load(Ordering::Relaxed) > 0);
    assert_eq!(db.check().unwrap(), [""; 0]);
}
