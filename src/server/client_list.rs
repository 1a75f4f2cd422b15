//! The connected clients, as CLIENT LIST, CLIENT KILL and INFO see them.
//!
//! A connection belongs to one event loop. This file holds the part of its state that other threads
//! may read. The event loop updates it without locks, so a list may be slightly out of date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::commands::SessionTrackingState;
use parking_lot::Mutex;

const RELAXED: Ordering = Ordering::Relaxed;

/// The event loop and the slot of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientHandle {
    /// The index of the event loop.
    pub(crate) event_loop: usize,
    /// The client's slot in its event loop.
    pub(crate) slot: usize,
    /// The client's id: another client may use the slot later.
    pub(crate) id: u64,
}

/// The names that a client has given itself.
#[derive(Debug, Default)]
pub(crate) struct ClientNames {
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
}

/// The public state of a client.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) handle: ClientHandle,
    pub(crate) address: String,
    pub(crate) local_address: String,
    pub(crate) descriptor: i32,
    pub(crate) is_unix: bool,
    /// The time of the connect, in milliseconds since the server started.
    pub(crate) since_ms: u64,
    pub(crate) active_ms: AtomicU64,
    pub(crate) names: Mutex<ClientNames>,
    pub(crate) database: AtomicU32,
    /// The last command, as an index in the command table.
    pub(crate) last_command: AtomicUsize,
    pub(crate) blocked: AtomicBool,
    /// The number of commands queued after MULTI; -1 outside a transaction.
    pub(crate) queued: AtomicI64,
    pub(crate) protocol: AtomicI64,
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) output_bytes: AtomicUsize,
    pub(crate) no_evict: AtomicBool,
    pub(crate) monitors: AtomicBool,
    /// The numbers of channels, patterns and shard channels that it is subscribed to.
    pub(crate) subscriptions: [AtomicUsize; 3],
    /// Whether and how it tracks keys.
    pub(crate) tracking: Mutex<Option<SessionTrackingState>>,
}

impl ClientInfo {
    /// The state of a client that connects now.
    pub(crate) fn new(handle: ClientHandle, now_ms: u64) -> Self {
        Self {
            handle,
            address: String::new(),
            local_address: String::new(),
            descriptor: -1,
            is_unix: false,
            since_ms: now_ms,
            active_ms: AtomicU64::new(now_ms),
            names: Mutex::default(),
            database: AtomicU32::new(0),
            last_command: AtomicUsize::new(usize::MAX),
            blocked: AtomicBool::new(false),
            queued: AtomicI64::new(-1),
            protocol: AtomicI64::new(2),
            input_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            no_evict: AtomicBool::new(false),
            monitors: AtomicBool::new(false),
            subscriptions: Default::default(),
            tracking: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.handle.id
    }

    /// The total size of the client's buffers.
    pub(crate) fn buffered(&self) -> usize {
        self.input_bytes.load(RELAXED) + self.output_bytes.load(RELAXED)
    }

    /// Whether the client is subscribed to anything.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscriptions.iter().any(|count| count.load(RELAXED) > 0)
    }

    fn flags(&self) -> String {
        let tracking = *self.tracking.lock();
        let marks = [
            ('O', self.monitors.load(RELAXED)),
            ('P', self.is_subscribed()),
            ('x', self.queued.load(RELAXED) >= 0),
            ('b', self.blocked.load(RELAXED)),
            ('t', tracking.is_some()),
            ('R', tracking.is_some_and(|tracking| tracking.broken)),
            ('B', tracking.is_some_and(|tracking| tracking.broadcasts)),
            ('U', self.is_unix),
            ('e', self.no_evict.load(RELAXED)),
        ];
        let flags: String = marks.iter().filter(|(_, on)| *on).map(|(mark, _)| *mark).collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }

    /// The client's line in CLIENT LIST.
    pub(crate) fn line(&self, now_ms: u64, last_command: &str) -> String {
        let names = self.names.lock();
        let (age, idle) = (now_ms - self.since_ms.min(now_ms), self.active_ms.load(RELAXED));
        let idle = now_ms.saturating_sub(idle);
        let (input, output) = (self.input_bytes.load(RELAXED), self.output_bytes.load(RELAXED));
        let [channels, patterns, shards] = [0, 1, 2].map(|at| {
            self.subscriptions.get(at).map_or(0, |count: &AtomicUsize| count.load(RELAXED))
        });
        let redirect = self.tracking.lock().map_or(-1, |it| it.redirect as i64);
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={channels} \
             psub={patterns} ssub={shards} multi={} qbuf={input} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={output} \
             oll=0 omem={output} tot-mem={} events=r cmd={} user=default redir={redirect} resp={} \
             lib-name={} lib-ver={}",
            self.id(),
            self.address,
            self.local_address,
            self.descriptor,
            names.name,
            age / 1000,
            idle / 1000,
            self.flags(),
            self.database.load(RELAXED),
            self.queued.load(RELAXED),
            self.buffered(),
            last_command,
            self.protocol.load(RELAXED),
            names.library,
            names.library_version,
        );
        line
    }
}

/// All connected clients, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ClientList {
    all: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    /// The number of clients, including those on their way to their event loop.
    reserved: AtomicUsize,
}

impl ClientList {
    /// Counts one more client unless `most` are connected. `release` or `remove` must follow.
    pub(crate) fn reserve(&self, most: usize) -> bool {
        let one_more = |reserved| (reserved < most).then_some(reserved + 1);
        self.reserved.fetch_update(RELAXED, RELAXED, one_more).is_ok()
    }

    /// The number of clients that `reserve` has counted.
    pub(crate) fn count(&self) -> usize {
        self.reserved.load(RELAXED)
    }

    /// Undoes `reserve` for a client that was not added.
    pub(crate) fn release(&self) {
        self.reserved.fetch_sub(1, RELAXED);
    }

    /// Adds a client that `reserve` has counted.
    pub(crate) fn add(&self, info: Arc<ClientInfo>) {
        self.all.lock().insert(info.id(), info);
    }

    pub(crate) fn remove(&self, id: u64) {
        if self.all.lock().remove(&id).is_some() {
            self.release();
        }
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.all.lock().get(&id).cloned()
    }

    /// Reserves memory for the output buffer of a client, where `limit` bounds the buffers of all
    /// clients. Grants `likely` bytes, or what is left, but at least `least`; a grant counts at
    /// once. One sixteenth of the limit is never granted: at the limit the server closes the
    /// largest client, which must not be another one than the client that asks for too much.
    pub(crate) fn reserve_output(
        &self,
        id: u64,
        least: usize,
        likely: usize,
        limit: usize,
    ) -> Option<usize> {
        let all = self.all.lock();
        let own = all.get(&id)?;
        let before = own.output_bytes.load(RELAXED);
        let buffered: usize = all.values().map(|info| info.buffered()).sum();
        let room = (limit - limit / 16).saturating_sub(buffered.saturating_sub(before));
        let granted = if own.no_evict.load(RELAXED) { likely } else { likely.min(room) };
        if granted < least {
            return None;
        }
        own.output_bytes.store(granted, RELAXED);
        Some(granted)
    }

    /// The memory of all clients.
    pub(crate) fn buffered(&self) -> usize {
        self.all.lock().values().map(|info| info.buffered()).sum()
    }

    pub(crate) fn list(&self) -> Vec<Arc<ClientInfo>> {
        self.all.lock().values().cloned().collect()
    }
}
