//! Clients that wait for a key to have something to take, first come, first served.
//!
//! Whoever writes a key serves those who wait for it, oldest first, and leaves what it took in
//! the mailbox of their event loop. A new waiter takes its turn behind those who wait already, and
//! looks once more after it counts as waiting. So no wake-up is lost: either the writer sees
//! that somebody waits, or the waiter sees what was written. A pop that does not wait may come
//! between a push and those who are served by it.
//!
//! One lock guards it all. Commands of the store run under it, and mailboxes are locked in it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use lsmkv::{Db, Reply};
use parking_lot::Mutex;

use super::clients::Home;
use super::pop::{Pop, Taken};

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Waiters {
    /// How many wait or are about to.
    count: AtomicUsize,
    queues: Mutex<Queues>,
}

/// Somebody who waits.
struct Waiter {
    home: Home,
    db: Db,
    pop: Pop,
}

#[derive(Default)]
struct Queues {
    next_ticket: u64,
    waiters: HashMap<u64, Waiter>,
    /// By key of any database: tickets, oldest first.
    by_key: HashMap<Vec<u8>, BTreeSet<u64>>,
    /// Nobody is served any more.
    closed: bool,
}

/// What became of a blocking command.
pub(crate) enum Wait {
    /// There was something, or an error.
    Done(Reply),
    /// The client waits; what it waits for comes with this ticket.
    Waits(u64),
}

/// What a waiter is given.
pub(crate) struct Delivery {
    pub(crate) to: Home,
    pub(crate) ticket: u64,
    pub(crate) reply: Reply,
}

impl Waiters {
    /// Whether anybody waits. Called after a write is visible.
    pub(crate) fn any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Takes what there is by `attempt`, which gives nothing if there is none; else waits.
    pub(crate) fn take_or_wait(
        &self,
        home: Home,
        db: &Db,
        pop: Pop,
        attempt: impl FnOnce(&Pop) -> Option<Reply>,
        mut deliver: impl FnMut(Delivery),
    ) -> Wait {
        let mut queues = self.queues.lock();
        self.count.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let served = queues.serve(pop.keys.clone(), &mut deliver);
        self.count.fetch_sub(served, Ordering::SeqCst);
        match attempt(&pop) {
            Some(reply) => {
                self.count.fetch_sub(1, Ordering::SeqCst);
                Wait::Done(reply)
            }
            None => Wait::Waits(queues.add(Waiter { home, db: db.clone(), pop })),
        }
    }

    /// Serves those who wait for these keys, which may have something now.
    pub(crate) fn serve<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a [u8]>,
        mut deliver: impl FnMut(Delivery),
    ) {
        let mut queues = self.queues.lock();
        let waited_for = |key: &&[u8]| queues.by_key.contains_key(*key);
        let keys: Vec<_> = keys.into_iter().filter(waited_for).map(<[u8]>::to_vec).collect();
        let served = queues.serve(keys, &mut deliver);
        self.count.fetch_sub(served, Ordering::SeqCst);
    }

    /// The same when any key may have something.
    pub(crate) fn serve_all(&self, mut deliver: impl FnMut(Delivery)) {
        let mut queues = self.queues.lock();
        let keys = queues.by_key.keys().cloned().collect();
        let served = queues.serve(keys, &mut deliver);
        self.count.fetch_sub(served, Ordering::SeqCst);
    }

    /// The server stops: what would be taken for those who wait might not reach them any more.
    pub(crate) fn close(&self) {
        self.queues.lock().closed = true;
    }

    /// Whoever has this ticket waits no more; what it is told then, whatever it waited for.
    /// `None` if it was served.
    pub(crate) fn give_up(&self, ticket: u64) -> Option<Reply> {
        self.queues.lock().remove(ticket)?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(Reply::NilArray)
    }
}

impl Queues {
    fn add(&mut self, waiter: Waiter) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        for key in &waiter.pop.keys {
            self.by_key.entry(key.clone()).or_default().insert(ticket);
        }
        self.waiters.insert(ticket, waiter);
        ticket
    }

    fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&ticket)?;
        for key in &waiter.pop.keys {
            if let Some(queue) = self.by_key.get_mut(key) {
                queue.remove(&ticket);
                if queue.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(waiter)
    }

    /// Serves those who wait for these keys, in the order in which they were written, and for the
    /// keys that they move elements to. How many.
    fn serve(&mut self, keys: Vec<Vec<u8>>, deliver: &mut impl FnMut(Delivery)) -> usize {
        let (mut served, mut keys) = (0, VecDeque::from(keys));
        while let Some(key) = keys.pop_front().filter(|_| !self.closed) {
            // Once nothing is left for one, there is nothing for those behind it.
            let mut exhausted: Vec<(u32, Taken)> = Vec::new();
            let tickets = self.by_key.get(&key).into_iter().flatten().copied().collect::<Vec<_>>();
            for ticket in tickets {
                let Some(waiter) = self.waiters.get(&ticket) else { continue };
                let source = (waiter.db.database(), waiter.pop.taken);
                if exhausted.contains(&source) {
                    continue;
                }
                let Some(reply) = waiter.pop.attempt(&waiter.db, &key) else {
                    exhausted.push(source);
                    continue;
                };
                keys.extend(waiter.pop.destination().map(<[u8]>::to_vec));
                deliver(Delivery { to: waiter.home, ticket, reply });
                self.remove(ticket);
                served += 1;
            }
        }
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::pop::PopForm;
    use lsmkv::Options;

    fn home(id: u64) -> Home {
        Home { event_loop: 0, slot: 0, id }
    }

    /// A client that waits with these words for a command of this form.
    fn wait(waiters: &Waiters, db: &Db, id: u64, form: PopForm, line: &str) -> Option<u64> {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let pop = Pop::parse(form, &argv).unwrap();
        let first = |pop: &Pop| pop.keys.iter().find_map(|key| pop.attempt(db, key));
        match waiters.take_or_wait(home(id), db, pop, first, |_| panic!("nobody else waits")) {
            Wait::Waits(ticket) => Some(ticket),
            Wait::Done(_) => None,
        }
    }

    /// Who is served when these keys were written, in order.
    fn served(waiters: &Waiters, keys: &[&str]) -> Vec<u64> {
        let mut found = Vec::new();
        let keys = keys.iter().map(|key| key.as_bytes());
        waiters.serve(keys, |delivery| found.push(delivery.to.id));
        found
    }

    const LEFT: PopForm = PopForm::One(Taken::List, "LEFT");
    const MIN: PopForm = PopForm::One(Taken::Sorted, "MIN");

    #[test]
    fn who_came_first_is_served_first_and_each_once() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        assert!(!waiters.any());
        for id in 1..=3 {
            assert!(wait(&waiters, &db, id, LEFT, "BLPOP k other 0").is_some());
        }
        db.rpush(b"k", &[b"a", b"b"]).unwrap();
        assert_eq!(served(&waiters, &["k"]), [1, 2]);
        assert_eq!(waiters.count.load(Ordering::Relaxed), 1);
        db.rpush(b"other", &[b"c", b"d"]).unwrap();
        assert_eq!(served(&waiters, &["k", "other"]), [3]);
        assert!(!waiters.any());
        assert_eq!(db.llen(b"other").unwrap(), 1);
    }

    #[test]
    fn what_is_there_is_taken_without_waiting() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        db.rpush(b"k", &[b"a"]).unwrap();
        assert!(wait(&waiters, &db, 1, LEFT, "BLPOP none k 0").is_none());
        assert!(!waiters.any() && db.llen(b"k").unwrap() == 0);
    }

    #[test]
    fn a_move_serves_those_who_wait_for_its_destination() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&waiters, &db, 1, LEFT, "BLPOP b 0");
        wait(&waiters, &db, 2, PopForm::Move, "BLMOVE a b LEFT RIGHT 0");
        db.rpush(b"a", &[b"x"]).unwrap();
        assert_eq!(served(&waiters, &["a"]), [2, 1]);
        assert_eq!(db.exists(&[b"a", b"b"]).unwrap(), 0);
    }

    #[test]
    fn keys_are_served_in_the_order_in_which_they_were_written() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&waiters, &db, 1, LEFT, "BLPOP b 0");
        wait(&waiters, &db, 2, LEFT, "BLPOP a b 0");
        db.rpush(b"a", &[b"x"]).unwrap();
        db.rpush(b"b", &[b"y"]).unwrap();
        assert_eq!(served(&waiters, &["a", "b"]), [2, 1]);
    }

    #[test]
    fn a_server_that_stops_takes_nothing_for_anybody() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&waiters, &db, 1, LEFT, "BLPOP k 0");
        waiters.close();
        db.rpush(b"k", &[b"x"]).unwrap();
        assert_eq!(served(&waiters, &["k"]), [] as [u64; 0]);
        assert_eq!(db.llen(b"k").unwrap(), 1);
    }

    #[test]
    fn types_and_databases_are_told_apart() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&waiters, &db, 1, LEFT, "BLPOP k 0");
        wait(&waiters, &db.select(1).unwrap(), 2, MIN, "BZPOPMIN k 0");
        wait(&waiters, &db, 3, MIN, "BZPOPMIN k 0");
        db.command(&[b"ZADD", b"k", b"1", b"m"]).unwrap();
        assert_eq!(served(&waiters, &["k"]), [3]);
        db.set(b"k", b"text").unwrap();
        assert_eq!(served(&waiters, &["k"]), [] as [u64; 0]);
        assert_eq!(waiters.count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn who_gives_up_is_not_served() {
        let (waiters, db) = (Waiters::default(), Db::open(":memory:", Options::default()).unwrap());
        let ticket = wait(&waiters, &db, 1, LEFT, "BLPOP k 0").unwrap();
        assert_eq!(waiters.give_up(ticket), Some(Reply::NilArray));
        assert_eq!(waiters.give_up(ticket), None);
        db.rpush(b"k", &[b"a"]).unwrap();
        assert_eq!(served(&waiters, &["k"]), [] as [u64; 0]);
        assert!(!waiters.any());
    }
}
