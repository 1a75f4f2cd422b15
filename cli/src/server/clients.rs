//! Who is connected, as any thread may ask: CLIENT LIST, CLIENT KILL, INFO.
//!
//! A connection belongs to one event loop; here is what others may know of it. The loop writes
//! these figures while it serves, without locks, so a list is a little older than now.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

const RELAXED: Ordering = Ordering::Relaxed;

/// Where a client is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// Which event loop.
    pub(crate) event_loop: usize,
    /// Which of its places.
    pub(crate) slot: usize,
    /// The client that had it then.
    pub(crate) id: u64,
}

/// What a client calls itself.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
}

/// One client.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) home: Home,
    pub(crate) address: String,
    pub(crate) local_address: String,
    pub(crate) descriptor: i32,
    pub(crate) is_unix: bool,
    /// Milliseconds since the server started.
    pub(crate) since_ms: u64,
    pub(crate) active_ms: AtomicU64,
    pub(crate) names: Mutex<Names>,
    pub(crate) database: AtomicU32,
    /// The catalogue's number of its last command.
    pub(crate) last_command: AtomicUsize,
    pub(crate) blocked: AtomicBool,
    /// Commands queued after MULTI; -1 outside.
    pub(crate) queued: AtomicI64,
    pub(crate) protocol: AtomicI64,
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) output_bytes: AtomicUsize,
    pub(crate) no_evict: AtomicBool,
}

impl ClientInfo {
    /// A client that connects now.
    pub(crate) fn new(home: Home, now_ms: u64) -> Self {
        Self {
            home,
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
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.home.id
    }

    /// Bytes in its buffers.
    pub(crate) fn buffered(&self) -> usize {
        self.input_bytes.load(RELAXED) + self.output_bytes.load(RELAXED)
    }

    fn flags(&self) -> String {
        let marks = [
            ('x', self.queued.load(RELAXED) >= 0),
            ('b', self.blocked.load(RELAXED)),
            ('U', self.is_unix),
            ('e', self.no_evict.load(RELAXED)),
        ];
        let flags: String = marks.iter().filter(|(_, on)| *on).map(|(mark, _)| *mark).collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }

    /// A line of CLIENT LIST.
    pub(crate) fn line(&self, now_ms: u64, last_command: &str) -> String {
        let names = self.names.lock();
        let (age, idle) = (now_ms - self.since_ms.min(now_ms), self.active_ms.load(RELAXED));
        let idle = now_ms.saturating_sub(idle);
        let (input, output) = (self.input_bytes.load(RELAXED), self.output_bytes.load(RELAXED));
        let mut line = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub=0 psub=0 \
             ssub=0 multi={} qbuf={input} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={output} \
             oll=0 omem={output} tot-mem={} events=r cmd={} user=default redir=-1 resp={} \
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

/// All clients, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    /// With those that are on their way to the event loop that will serve them.
    admitted: AtomicUsize,
}

impl Clients {
    /// The id of a new client.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, RELAXED) + 1
    }

    /// Counts one more, if it is not too many; `dismiss` or `remove` follows some day.
    pub(crate) fn admit(&self, most: usize) -> bool {
        let one_more = |admitted| (admitted < most).then_some(admitted + 1);
        self.admitted.fetch_update(RELAXED, RELAXED, one_more).is_ok()
    }

    /// One that was admitted is not served.
    pub(crate) fn dismiss(&self) {
        self.admitted.fetch_sub(1, RELAXED);
    }

    /// One that was admitted is served.
    pub(crate) fn add(&self, info: Arc<ClientInfo>) {
        self.all.lock().insert(info.id(), info);
    }

    pub(crate) fn remove(&self, id: u64) {
        if self.all.lock().remove(&id).is_some() {
            self.dismiss();
        }
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.all.lock().get(&id).cloned()
    }

    /// How large the output of a client may become if all buffers together may take `limit` bytes:
    /// as it would like, or as large as there is room, but no less than `least`. What is granted
    /// counts at once. A sixteenth of the limit is never granted: at the limit clients are closed,
    /// and it shall not be another one than that which asks for too much.
    pub(crate) fn grant_output(
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

    pub(crate) fn list(&self) -> Vec<Arc<ClientInfo>> {
        self.all.lock().values().cloned().collect()
    }
}
