//! Clients that wait for an element of a key, in order of arrival.
//!
//! A thread that writes a key serves the clients that wait for it, oldest first, and posts each
//! reply to the mailbox of the client's event loop. A new client queues behind those that already
//! wait, and tries once more after it is counted as waiting. So no wake-up is lost: either the
//! writer sees the waiting client, or the client sees the write. A non-blocking pop may run between
//! a push and the clients that the push serves.
//!
//! One lock guards everything. Commands of the store run under it, and mailboxes are locked while
//! it is held.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use lsmkv::{Db, Reply};
use parking_lot::Mutex;

use super::blocking_pop::{BlockingPop, PopSource};
use super::client_list::ClientHandle;

/// All blocked clients of the server.
#[derive(Default)]
pub(crate) struct BlockedClients {
    /// The number of clients that wait or are about to wait.
    count: AtomicUsize,
    queues: Mutex<WaitQueues>,
}

/// A client that waits, with its pop.
struct BlockedClient {
    handle: ClientHandle,
    db: Db,
    pop: BlockingPop,
}

#[derive(Default)]
struct WaitQueues {
    next_ticket: u64,
    blocked: HashMap<u64, BlockedClient>,
    /// The tickets that wait for each key, in any database, oldest first.
    by_key: HashMap<Vec<u8>, BTreeSet<u64>>,
    /// Whether the server is stopping; then nobody is served.
    closed: bool,
}

/// The result of a blocking pop.
pub(crate) enum PopOutcome {
    /// The pop found an element, or failed.
    Ready(Reply),
    /// The client waits. Its reply will carry this ticket.
    Blocked(u64),
}

/// A reply for a blocked client.
pub(crate) struct Delivery {
    pub(crate) to: ClientHandle,
    pub(crate) ticket: u64,
    pub(crate) reply: Reply,
}

impl BlockedClients {
    /// Whether any client waits. The caller's write must already be visible.
    pub(crate) fn any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Runs `attempt`, which returns `None` if all keys are empty. Then the client blocks.
    pub(crate) fn pop_or_block(
        &self,
        handle: ClientHandle,
        db: &Db,
        pop: BlockingPop,
        attempt: impl FnOnce(&BlockingPop) -> Option<Reply>,
        mut deliver: impl FnMut(Delivery),
    ) -> PopOutcome {
        let mut queues = self.queues.lock();
        self.count.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let served = queues.serve(pop.keys.clone(), &mut deliver);
        self.count.fetch_sub(served, Ordering::SeqCst);
        match attempt(&pop) {
            Some(reply) => {
                self.count.fetch_sub(1, Ordering::SeqCst);
                PopOutcome::Ready(reply)
            }
            None => PopOutcome::Blocked(queues.add(BlockedClient { handle, db: db.clone(), pop })),
        }
    }

    /// Serves the clients that wait for these keys.
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

    /// Serves the clients that wait for any key.
    pub(crate) fn serve_all(&self, mut deliver: impl FnMut(Delivery)) {
        let mut queues = self.queues.lock();
        let keys = queues.by_key.keys().cloned().collect();
        let served = queues.serve(keys, &mut deliver);
        self.count.fetch_sub(served, Ordering::SeqCst);
    }

    /// Stops serving: a stopping server might not deliver an element that it pops now.
    pub(crate) fn close(&self) {
        self.queues.lock().closed = true;
    }

    /// Removes a client and returns its reply for an ended wait; `None` if the client was already
    /// served.
    pub(crate) fn cancel(&self, ticket: u64) -> Option<Reply> {
        self.queues.lock().remove(ticket)?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(Reply::NilArray)
    }
}

impl WaitQueues {
    fn add(&mut self, client: BlockedClient) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        for key in &client.pop.keys {
            self.by_key.entry(key.clone()).or_default().insert(ticket);
        }
        self.blocked.insert(ticket, client);
        ticket
    }

    fn remove(&mut self, ticket: u64) -> Option<BlockedClient> {
        let client = self.blocked.remove(&ticket)?;
        for key in &client.pop.keys {
            if let Some(queue) = self.by_key.get_mut(key) {
                queue.remove(&ticket);
                if queue.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        Some(client)
    }

    /// Serves the clients that wait for these keys, in the order of the writes, and for the keys
    /// they move elements to. Returns the number of clients served.
    fn serve(&mut self, keys: Vec<Vec<u8>>, deliver: &mut impl FnMut(Delivery)) -> usize {
        let (mut served, mut keys) = (0, VecDeque::from(keys));
        while let Some(key) = keys.pop_front().filter(|_| !self.closed) {
            // If one client finds nothing, those behind it find nothing either.
            let mut exhausted: Vec<(u32, PopSource)> = Vec::new();
            let tickets = self.by_key.get(&key).into_iter().flatten().copied().collect::<Vec<_>>();
            for ticket in tickets {
                let Some(client) = self.blocked.get(&ticket) else { continue };
                let source = (client.db.database(), client.pop.source);
                if exhausted.contains(&source) {
                    continue;
                }
                let Some(reply) = client.pop.try_key(&client.db, &key) else {
                    exhausted.push(source);
                    continue;
                };
                keys.extend(client.pop.destination().map(<[u8]>::to_vec));
                deliver(Delivery { to: client.handle, ticket, reply });
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
    use crate::server::blocking_pop::PopSyntax;
    use lsmkv::Options;

    fn handle(id: u64) -> ClientHandle {
        ClientHandle { event_loop: 0, slot: 0, id }
    }

    /// Blocks a client with this command line.
    fn wait(
        blocked: &BlockedClients,
        db: &Db,
        id: u64,
        form: PopSyntax,
        line: &str,
    ) -> Option<u64> {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let pop = BlockingPop::parse(form, &argv).unwrap();
        let first = |pop: &BlockingPop| pop.keys.iter().find_map(|key| pop.try_key(db, key));
        match blocked.pop_or_block(handle(id), db, pop, first, |_| panic!("nobody else waits")) {
            PopOutcome::Blocked(ticket) => Some(ticket),
            PopOutcome::Ready(_) => None,
        }
    }

    /// The clients served after writes of these keys, in order.
    fn served(blocked: &BlockedClients, keys: &[&str]) -> Vec<u64> {
        let mut found = Vec::new();
        let keys = keys.iter().map(|key| key.as_bytes());
        blocked.serve(keys, |delivery| found.push(delivery.to.id));
        found
    }

    const LEFT: PopSyntax = PopSyntax::Single(PopSource::List, "LEFT");
    const MIN: PopSyntax = PopSyntax::Single(PopSource::SortedSet, "MIN");

    #[test]
    fn who_came_first_is_served_first_and_each_once() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        assert!(!blocked.any());
        for id in 1..=3 {
            assert!(wait(&blocked, &db, id, LEFT, "BLPOP k other 0").is_some());
        }
        db.rpush(b"k", &[b"a", b"b"]).unwrap();
        assert_eq!(served(&blocked, &["k"]), [1, 2]);
        assert_eq!(blocked.count.load(Ordering::Relaxed), 1);
        db.rpush(b"other", &[b"c", b"d"]).unwrap();
        assert_eq!(served(&blocked, &["k", "other"]), [3]);
        assert!(!blocked.any());
        assert_eq!(db.llen(b"other").unwrap(), 1);
    }

    #[test]
    fn what_is_there_is_taken_without_waiting() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        db.rpush(b"k", &[b"a"]).unwrap();
        assert!(wait(&blocked, &db, 1, LEFT, "BLPOP none k 0").is_none());
        assert!(!blocked.any() && db.llen(b"k").unwrap() == 0);
    }

    #[test]
    fn a_move_serves_those_who_wait_for_its_destination() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&blocked, &db, 1, LEFT, "BLPOP b 0");
        wait(&blocked, &db, 2, PopSyntax::Move, "BLMOVE a b LEFT RIGHT 0");
        db.rpush(b"a", &[b"x"]).unwrap();
        assert_eq!(served(&blocked, &["a"]), [2, 1]);
        assert_eq!(db.exists(&[b"a", b"b"]).unwrap(), 0);
    }

    #[test]
    fn keys_are_served_in_the_order_in_which_they_were_written() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&blocked, &db, 1, LEFT, "BLPOP b 0");
        wait(&blocked, &db, 2, LEFT, "BLPOP a b 0");
        db.rpush(b"a", &[b"x"]).unwrap();
        db.rpush(b"b", &[b"y"]).unwrap();
        assert_eq!(served(&blocked, &["a", "b"]), [2, 1]);
    }

    #[test]
    fn a_server_that_stops_takes_nothing_for_anybody() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&blocked, &db, 1, LEFT, "BLPOP k 0");
        blocked.close();
        db.rpush(b"k", &[b"x"]).unwrap();
        assert_eq!(served(&blocked, &["k"]), [] as [u64; 0]);
        assert_eq!(db.llen(b"k").unwrap(), 1);
    }

    #[test]
    fn types_and_databases_are_told_apart() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        wait(&blocked, &db, 1, LEFT, "BLPOP k 0");
        wait(&blocked, &db.select(1).unwrap(), 2, MIN, "BZPOPMIN k 0");
        wait(&blocked, &db, 3, MIN, "BZPOPMIN k 0");
        db.command(&[b"ZADD", b"k", b"1", b"m"]).unwrap();
        assert_eq!(served(&blocked, &["k"]), [3]);
        db.set(b"k", b"text").unwrap();
        assert_eq!(served(&blocked, &["k"]), [] as [u64; 0]);
        assert_eq!(blocked.count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn who_gives_up_is_not_served() {
        let (blocked, db) =
            (BlockedClients::default(), Db::open(":memory:", Options::default()).unwrap());
        let ticket = wait(&blocked, &db, 1, LEFT, "BLPOP k 0").unwrap();
        assert_eq!(blocked.cancel(ticket), Some(Reply::NilArray));
        assert_eq!(blocked.cancel(ticket), None);
        db.rpush(b"k", &[b"a"]).unwrap();
        assert_eq!(served(&blocked, &["k"]), [] as [u64; 0]);
        assert!(!blocked.any());
    }
}
