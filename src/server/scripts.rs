//! Scripts that take long, or much memory, leave the event loop.
//!
//! Invariant: a script keeps the other clients of its loop waiting for [`BUDGET`] at most. It begins
//! on the loop, which costs nothing if it is short. One that takes more is given up there, before
//! anything of it was visible, and starts again on a thread of its own while its client is blocked.
//! A script that was slow the last time starts there at once, and so does one of a client whose last
//! script was slow, or whose text is long.
//!
//! Threads of scripts give way to the event loops, and the more of them there are, the less of a
//! processor each one gets. One at a time has the memory that the options allow; the others have
//! [`THREAD_MEMORY`], and wait for that one if they need more.
//!
//! A client that tracks keys runs its scripts on the loop, because its session must, and so does EXEC.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use crate::commands::Reply;
use crate::commands::script_log;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::background::give_way_by;
use crate::txn::Db;
use parking_lot::Mutex;

use super::client::{BlockedState, Client};
use super::error_reply::error_text;
use super::mailbox::Message;
use super::session_call::write_failure;
use super::shared::Server;
use super::transaction_queue::arguments_memory;
use crate::resp::Writer;

/// The time that a script may take on an event loop.
const BUDGET: Duration = Duration::from_millis(1);
/// The time that a script may take on an event loop while slow scripts run: whoever sends one may send others.
const TIME_BESIDE_SLOW: Duration = Duration::from_micros(200);
/// The bytes of Lua values that a script may make on an event loop. To fill them takes a part of the time.
const LOOP_MEMORY: usize = 1 << 20;
/// A longer script is compiled on a thread.
const LONG_TEXT: usize = 16 << 10;
/// The bytes of Lua values of a script on a thread, unless no other one has more.
const THREAD_MEMORY: usize = 2 << 20;
/// A script that needs more memory waits so long for the one that has it.
const MEMORY_WAIT: Duration = Duration::from_secs(5);
/// The number of scripts that may run on threads of their own.
const MAX_THREADS: usize = 64;
/// By how much the priority of a thread is less for each doubling of their number: all of them together
/// take four fifths of a processor at most from an event loop on it.
const PRIORITY_STEP: u32 = 4;
/// The number of slow scripts that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// The scripts that were slow, and those that run on threads of their own.
#[derive(Debug, Default)]
pub(crate) struct SlowScripts {
    any: AtomicBool,
    /// Hashes of the text or digest of scripts.
    known: Mutex<HashSet<u64>>,
    hasher: RandomState,
    running: Arc<AtomicUsize>,
    /// Held by the script that has more memory than the others.
    large: Mutex<()>,
    next_wait: AtomicU64,
}

impl SlowScripts {
    fn is_known(&self, script: &[u8]) -> bool {
        self.any.load(Relaxed) && self.known.lock().contains(&self.hasher.hash_one(script))
    }

    fn remember(&self, script: &[u8]) {
        let mut known = self.known.lock();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(self.hasher.hash_one(script));
        self.any.store(true, Relaxed);
    }

    fn forget(&self, script: &[u8]) {
        self.known.lock().remove(&self.hasher.hash_one(script));
    }

    /// Runs a script on an event loop; `None` if it takes more than it may there.
    fn run_on_loop(&self, db: &Db, argv: &[&[u8]]) -> Result<Option<Reply>> {
        let is_quiet = self.running.load(Relaxed) == 0;
        let time = if is_quiet { BUDGET } else { TIME_BESIDE_SLOW };
        db.script_within(argv, Some(time), LOOP_MEMORY)
    }

    /// Runs a script on a thread, and again when it may have all memory if it needs more.
    fn run(&self, db: &Db, argv: &[&[u8]]) -> Reply {
        let failed = |error: Error| Reply::Error(error_text(&error));
        match db.script_within(argv, None, THREAD_MEMORY) {
            Ok(Some(reply)) => return reply,
            Ok(None) => script_log::forget(),
            Err(error) => return failed(error),
        }
        let Some(_large) = self.large.try_lock_for(MEMORY_WAIT) else {
            return Reply::Error(BUSY_MEMORY.to_owned());
        };
        db.command(argv).unwrap_or_else(failed)
    }
}

const BUSY_MEMORY: &str = "BUSY another script takes much memory; try again later. SCRIPT KILL ends \
     the one that has run longest.";

/// Room for a thread, until it ends.
pub(crate) struct ThreadPermit(Arc<AtomicUsize>);

impl ThreadPermit {
    /// Takes room for a thread, if there is any.
    pub(crate) fn take(server: &Server) -> Option<Self> {
        let running = &server.slow_scripts.running;
        let permit = Self(Arc::clone(running));
        (running.fetch_add(1, Relaxed) < MAX_THREADS).then_some(permit)
    }
}

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Runs a command that starts a script, here or on a thread of its own.
pub(crate) fn run_script(
    server: &Server,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    let script = argv.get(1).copied().unwrap_or_default();
    let slow = &server.slow_scripts;
    if !client.had_slow_script && script.len() <= LONG_TEXT && !slow.is_known(script) {
        match slow.run_on_loop(client.session.db(), argv) {
            Ok(Some(reply)) => return out.reply(&reply),
            Ok(None) => {
                script_log::forget();
                slow.remember(script);
                client.had_slow_script = true;
            }
            Err(error) => return write_failure(server, &error, out),
        }
    }
    let words: Vec<Vec<u8>> = argv.iter().map(|word| word.to_vec()).collect();
    let slow = Arc::clone(slow);
    run_on_thread(server, client, arguments_memory(argv.iter().copied()), out, move |db| {
        let argv: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        give_way_by(PRIORITY_STEP * slow.running.load(Relaxed).max(1).ilog2());
        let reply = slow.run(db, &argv);
        if is_quick_thread()
            && let Some(script) = argv.get(1)
        {
            slow.forget(script);
        }
        reply
    });
}

/// Whether this thread, which has run one script, would not have kept an event loop for long.
fn is_quick_thread() -> bool {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec == 0 && u128::from(used.tv_nsec.unsigned_abs()) < TIME_BESIDE_SLOW.as_nanos()
}

/// Runs work that may take long on a thread of its own, while its client is blocked.
pub(crate) fn run_on_thread(
    server: &Server,
    client: &mut Client,
    memory_bytes: usize,
    out: &mut Writer<'_>,
    work: impl FnOnce(&Db) -> Reply + Send + 'static,
) {
    match ThreadPermit::take(server) {
        Some(permit) => run_with(permit, server, client, memory_bytes, out, work),
        None => {
            out.error("BUSY too many slow scripts run; try again later. SCRIPT KILL ends one.");
        }
    }
}

/// Runs work on the thread of a permit, while its client is blocked. A transaction of the client goes
/// on at least as long: to end it the loop would have to wait for the work.
pub(crate) fn run_with(
    permit: ThreadPermit,
    server: &Server,
    client: &mut Client,
    memory_bytes: usize,
    out: &mut Writer<'_>,
    work: impl FnOnce(&Db) -> Reply + Send + 'static,
) {
    let slow = &server.slow_scripts;
    let (db, mailboxes) = (client.session.db().clone(), Arc::clone(&server.mailboxes));
    let (to, wait) = (client.info.handle, slow.next_wait.fetch_add(1, Relaxed));
    let transaction = client.held.transaction();
    let monitored = server.monitors.any();
    let work = move || {
        let run = || match monitored {
            true => script_log::record(|| work(&db)),
            false => (work(&db), Vec::new()),
        };
        let (reply, called) = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(done) => done,
            Err(_) => {
                let error = Error::new(ErrorKind::Panic, "a script panicked");
                db.degrade(&error);
                (Reply::Error(error_text(&error)), Vec::new())
            }
        };
        drop((transaction, db, permit));
        let was_slow = !is_quick_thread();
        mailboxes.post(to.event_loop, Message::ScriptDone { to, wait, reply, called, was_slow });
    };
    let spawned = crate::sync::spawn("lsmkv-script", work);
    if let Err(error) = spawned {
        return out.error(&format!("BUSY there is no thread for the script: {error}"));
    }
    client.blocked = Some(BlockedState {
        pop: None,
        script: Some(wait),
        deadline: None,
        timeout_reply: Reply::Nil,
        memory_bytes,
    });
}
