//! `lsmkv_db`: the only handle type, in shells that are never freed.
//!
//! Invariants:
//! - A shell's memory stays a shell for ever, so a call can safely check a closed handle.
//! - A closed shell rests for the next 4,096 closes before it is used again. Its pointer then
//!   carries another generation in its low bits, so an old pointer is recognised for 63 more lives.
//!   (Shells are 64-byte aligned, and the pointer is opaque to C.)
//! - The slot of a shell holds what the handle stands for while it is open. A close waits for the
//!   calls that are inside (`slot`).
//!
//! Any thread may call anything at any time. A forked child starts with fresh pools, and never
//! touches a lock that another thread of the parent held at the fork.
#![expect(unsafe_code, reason = "dereferences handles given by C")]

use std::collections::VecDeque;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::fork;
use crate::ffi::gate::Gate;
use crate::ffi::handle_kind::HandleKind;
use crate::ffi::slice::misuse;
use crate::ffi::slot::{self, GENERATIONS, Slot};

/// A store, or an object made from one: another database, a snapshot, a transaction, a session, a
/// batch. Exactly one lsmkv_close frees it; handles are closed in any order. The rules on threads
/// are at the head of this header.
pub struct lsmkv_db {
    _opaque: (),
}

const MAGIC: u64 = u64::from_le_bytes(*b"lsmkv db");
const RESTING: usize = 4096;

#[repr(C, align(64))]
struct Shell {
    magic: u64,
    slot: Slot<HandleKind>,
    /// The fork generation of the process that opened the handle.
    forks: AtomicU32,
    /// The shell made before this one. The list only grows, so walking it needs no lock.
    older: *const Shell,
}

// SAFETY: `older` is written before the shell is shared and never after; the rest is atomic.
unsafe impl Sync for Shell {}

/// The head of the list of all shells.
static NEWEST: AtomicPtr<Shell> = AtomicPtr::new(null_mut());

/// Free shells, and free gates, which can be reused at once (see `gate`).
#[derive(Default)]
struct Pool {
    resting: VecDeque<&'static Shell>,
    gates: Vec<&'static Gate>,
}

/// The pool of this process; NULL until the first use. The lock is the standard library's: a child
/// that was forked while a store was open may wait for it, unlike for parking_lot's.
static POOL: AtomicPtr<Mutex<Pool>> = AtomicPtr::new(null_mut());

/// A call inside a handle. The handle is not freed before this value is dropped.
pub(super) struct Entered(slot::Entered<HandleKind>);

impl Entered {
    pub(super) fn kind(&self) -> &HandleKind {
        self.0.value()
    }
}

/// Puts a database, or another kind of handle, into a shell for C.
pub(super) fn open(kind: HandleKind) -> *mut lsmkv_db {
    let (shell, gate) = {
        let mut pool = pool();
        (pool.shell(), pool.gate())
    };
    shell.forks.store(fork::generation(), Ordering::Relaxed);
    let generation = shell.slot.put(Box::new(kind), gate);
    std::ptr::from_ref(shell).cast_mut().cast::<lsmkv_db>().map_addr(|addr| addr | generation)
}

/// Enters an open handle for the duration of a call.
///
/// # Safety
/// `db` is NULL or was returned by `open`.
#[inline]
pub(super) unsafe fn enter(db: *mut lsmkv_db) -> Result<Entered> {
    // SAFETY: the caller's promise.
    let (shell, generation) = unsafe { shell_of(db)? };
    shell.slot.enter(generation).map(Entered).ok_or_else(closed)
}

/// Takes the contents out of a shell. It rejects new calls and waits for those inside, after waking
/// the ones that wait for a ticket.
///
/// # Safety
/// `db` is NULL or was returned by `open`.
pub(super) unsafe fn close(db: *mut lsmkv_db) -> Result<Box<HandleKind>> {
    // SAFETY: the caller's promise.
    let (shell, generation) = unsafe { shell_of(db)? };
    let taken = shell.slot.take(generation, HandleKind::announce_close);
    let (kind, gate) = taken.ok_or_else(closed)?;
    let mut pool = pool();
    pool.gates.push(gate);
    pool.resting.push_back(shell);
    Ok(kind)
}

/// Abandons the parent's locks and pools in a forked child. It takes no lock. Returns whether the
/// parent had a store open.
pub(super) fn abandon_in_child(parents_forks: u32) -> bool {
    let mut open = false;
    POOL.store(null_mut(), Ordering::Relaxed);
    let mut next = NEWEST.load(Ordering::Acquire).cast_const();
    // SAFETY: shells are never freed, and a list element is complete before it is linked.
    while let Some(shell) = unsafe { next.as_ref() } {
        next = shell.older;
        if shell.forks.load(Ordering::Relaxed) != parents_forks {
            continue;
        }
        // SAFETY: a database is taken out of its shell before it is freed, and the child has no
        // other thread that could free it now.
        if let Some(kind) = unsafe { shell.slot.peek() } {
            open |= kind.abandon_in_child();
        }
    }
    open
}

/// The shell behind a pointer, and the generation that the pointer carries.
///
/// # Safety
/// `db` is NULL or was returned by `open`.
#[inline]
unsafe fn shell_of(db: *mut lsmkv_db) -> Result<(&'static Shell, usize)> {
    let generation = db.addr() % GENERATIONS;
    let shell = db.cast_const().cast::<Shell>().map_addr(|addr| addr - generation);
    // SAFETY: `open` returned it, so it points into a shell, and shells are never freed. The
    // magic word is a net for pointers to something else, as far as such a net can hold.
    match unsafe { shell.as_ref() } {
        None => Err(misuse("db is NULL: pass a handle made by lsmkv_open")),
        Some(shell) if shell.magic != MAGIC => {
            Err(misuse("db is not a handle: pass a pointer made by lsmkv_open"))
        }
        Some(shell) if shell.forks.load(Ordering::Relaxed) != fork::generation() => {
            Err(fork::forked())
        }
        Some(shell) => Ok((shell, generation)),
    }
}

fn closed() -> Error {
    Error::new(
        ErrorKind::Misuse,
        "this handle was closed already: every handle is closed exactly once and not used after",
    )
}

fn pool() -> MutexGuard<'static, Pool> {
    let mut pool = POOL.load(Ordering::Acquire);
    if pool.is_null() {
        let made = Box::into_raw(Box::new(Mutex::new(Pool::default())));
        match POOL.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => pool = made,
            Err(theirs) => {
                pool = theirs;
                // SAFETY: made above, shared with nobody.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
    // SAFETY: not NULL, and the one pool that was stored is never freed.
    let pool = unsafe { &*pool };
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Returns the shell that has rested longest, if long enough; otherwise a new one.
    fn shell(&mut self) -> &'static Shell {
        if self.resting.len() > RESTING
            && let Some(shell) = self.resting.pop_front()
        {
            return shell;
        }
        let shell = Box::into_raw(Box::new(Shell {
            magic: MAGIC,
            slot: Slot::empty(),
            forks: AtomicU32::new(0),
            // The pool's lock orders the threads that add to the list.
            older: NEWEST.load(Ordering::Relaxed),
        }));
        NEWEST.store(shell, Ordering::Release);
        // SAFETY: just made, and never freed.
        unsafe { &*shell }
    }

    fn gate(&mut self) -> &'static Gate {
        self.gates.pop().unwrap_or_else(|| Box::leak(Box::default()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::options::Options;
    use crate::txn::Db;

    fn in_memory() -> HandleKind {
        HandleKind::Root(Db::open(":memory:", Options::default()).unwrap())
    }

    fn new_handle() -> *mut lsmkv_db {
        open(in_memory())
    }

    /// Enters a handle. Every pointer in these tests is NULL or came from `open`.
    fn try_enter(db: *mut lsmkv_db) -> Result<Entered> {
        // SAFETY: see above.
        unsafe { enter(db) }
    }

    fn try_close(db: *mut lsmkv_db) -> Result<()> {
        // SAFETY: see above.
        unsafe { close(db) }.and_then(|db| db.close())
    }

    #[test]
    fn a_closed_handle_is_recognised() {
        let db = new_handle();
        try_enter(db).unwrap().kind().store().unwrap().set(b"k", b"v").unwrap();
        try_close(db).unwrap();
        assert_eq!(try_enter(db).err().unwrap().kind(), ErrorKind::Misuse);
        assert_eq!(try_close(db).unwrap_err().kind(), ErrorKind::Misuse);
        assert_eq!(try_enter(null_mut()).err().unwrap().kind(), ErrorKind::Misuse);
    }

    #[test]
    fn a_shell_is_used_again_only_after_4096_further_closes_and_under_another_pointer() {
        let mut pool = Pool::default();
        let first = pool.shell();
        pool.resting.push_back(first);
        for _ in 0..RESTING {
            let next = pool.shell();
            assert!(!std::ptr::eq(next, first));
            pool.resting.push_back(next);
        }
        assert!(std::ptr::eq(pool.shell(), first));
    }

    #[test]
    fn an_old_pointer_to_a_shell_in_its_next_life_is_recognised() {
        let old = new_handle();
        try_close(old).unwrap();
        // SAFETY: the pointer came from `open`.
        let (shell, generation) = unsafe { shell_of(old) }.unwrap();
        let next = shell.slot.put(Box::new(in_memory()), Box::leak(Box::default()));
        assert!(try_enter(old).is_err());
        assert!(try_close(old).is_err());
        let new = old.map_addr(|addr| addr - generation + next);
        assert!(try_enter(new).is_ok());
        try_close(new).unwrap();
    }

    #[test]
    fn of_many_threads_that_close_a_handle_one_succeeds_and_no_call_is_cut_short() {
        for _ in 0..if cfg!(miri) { 1 } else { 50 } {
            let db = new_handle().expose_provenance();
            let shared = || std::ptr::with_exposed_provenance_mut::<lsmkv_db>(db);
            let go = AtomicBool::new(false);
            let closes = std::thread::scope(|scope| {
                let callers: Vec<_> = (0..3)
                    .map(|_| {
                        scope.spawn(|| {
                            while let Ok(entered) = try_enter(shared()) {
                                entered.kind().store().unwrap().set(b"k", b"v").unwrap();
                                go.store(true, Ordering::Relaxed);
                            }
                        })
                    })
                    .collect();
                while !go.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                let closers: Vec<_> = (0..3).map(|_| scope.spawn(|| try_close(shared()))).collect();
                let closes = closers.into_iter().filter_map(|t| t.join().unwrap().ok()).count();
                callers.into_iter().for_each(|t| t.join().unwrap());
                closes
            });
            assert_eq!(closes, 1);
        }
    }
}
