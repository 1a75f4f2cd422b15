//! The target of an exported function: a database that runs commands, a batch that stores them, or a
//! store elsewhere that is sent them. It also turns the caller's pointers into slices, checked against the limits of the store.
#![expect(unsafe_code, reason = "turns the caller's pointers into slices")]

use std::ffi::c_void;
use std::time::Duration;

use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplyBuilder, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::argv::Argv;
use crate::ffi::bitfield::lsmkv_bitfield_op;
use crate::ffi::output::WriteReply;
use crate::ffi::slice::{array, input, lsmkv_slice, misuse};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::keyspace::limits::Limits;
use crate::txn::{Db, Ticket};
use crate::types::{BitfieldOp, KeyEntry, KeyRange};

/// Arguments of a call.
pub(super) type Items<'a> = Vec<&'a [u8]>;
/// Pairs of arguments of a call.
pub(super) type Pairs<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Takes commands in place of a database of this process: a batch stores them, a remote store is
/// sent them.
pub(super) trait Elsewhere {
    /// Takes a command with its arguments, the name first, and writes its reply to `sink`. Returns
    /// whether there is a reply: a batch stores the command, or fails if it could never run.
    fn take(&self, entry: &'static Entry, argv: &[&[u8]], sink: &mut dyn ReplySink)
    -> Result<bool>;

    /// Fails if it only takes writes.
    fn reads(&self) -> Result<()>;

    /// The reason why there is no database of this process.
    fn no_database(&self) -> Error;

    /// Does upkeep there, such as FLUSH.
    fn upkeep(&self, _what: &str, _argument: &[u8]) -> Result<Reply> {
        Err(self.no_database())
    }

    /// Shows what others have written by now.
    fn refresh(&self) -> Result<()> {
        Err(self.no_database())
    }

    /// Waits until the writes of a ticket are durable. Returns whether they are.
    fn wait(&self, _ticket: Ticket, _limit: Duration) -> Result<bool> {
        Err(self.no_database())
    }

    /// Begins a walk over keys.
    fn keys(&self, _range: KeyRange) -> Result<Box<dyn KeySource>> {
        Err(self.no_database())
    }
}

/// A walk over keys that is not one of a database of this process.
pub(super) trait KeySource: Send {
    /// The next key; `None` at the end.
    fn next(&mut self) -> Result<Option<KeyEntry>>;

    /// Up to `max_items` keys, at least one; ends early once they reach `max_bytes`.
    fn next_chunk(&mut self, max_items: usize, max_bytes: usize) -> Result<Vec<KeyEntry>>;
}

/// Where an exported function runs its command.
pub(super) struct CommandTarget<'a> {
    limits: Limits,
    place: Place<'a>,
}

enum Place<'a> {
    Here(&'a Db),
    Elsewhere(&'a dyn Elsewhere),
}

impl<'a> CommandTarget<'a> {
    /// A target that runs commands on `db`.
    #[inline]
    pub(super) fn database(db: &'a Db) -> Self {
        Self { limits: db.limits(), place: Place::Here(db) }
    }

    /// A target that gives commands to `place`, within `limits`.
    pub(super) fn elsewhere(limits: Limits, place: &'a dyn Elsewhere) -> Self {
        Self { limits, place: Place::Elsewhere(place) }
    }

    /// The database of this process that runs commands. Fails if they run elsewhere.
    #[inline]
    pub(super) fn db(&self) -> Result<&'a Db> {
        match self.place {
            Place::Here(db) => Ok(db),
            Place::Elsewhere(place) => Err(place.no_database()),
        }
    }

    /// Does upkeep such as FLUSH where the store is, if that is elsewhere; `None` if it is here.
    pub(super) fn upkeep_elsewhere(&self, what: &str, argument: &[u8]) -> Result<Option<Reply>> {
        match self.place {
            Place::Here(_) => Ok(None),
            Place::Elsewhere(place) => place.upkeep(what, argument).map(Some),
        }
    }

    /// Moves on to what others have written by now.
    pub(super) fn refresh(&self) -> Result<()> {
        match self.place {
            Place::Here(db) => db.refresh(),
            Place::Elsewhere(place) => place.refresh(),
        }
    }

    /// Waits until the writes of a ticket are durable. Returns whether they are.
    pub(super) fn wait(&self, ticket: Ticket, limit: Duration) -> Result<bool> {
        match self.place {
            Place::Here(db) => db.wait(ticket, Some(limit)),
            Place::Elsewhere(place) => place.wait(ticket, limit),
        }
    }

    /// Begins a walk over keys where the store is, if that is elsewhere; gives the range back if it is
    /// here.
    pub(super) fn keys_elsewhere(
        &self,
        range: KeyRange,
    ) -> Result<std::result::Result<Box<dyn KeySource>, KeyRange>> {
        match self.place {
            Place::Here(_) => Ok(Err(range)),
            Place::Elsewhere(place) => place.keys(range).map(Ok),
        }
    }

    /// Whether commands are stored or sent instead of run on a database of this process.
    #[inline]
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self.place, Place::Elsewhere(_))
    }

    /// Gives a command with these arguments to where it runs, and fills `out` with its reply. `nil`
    /// is the status of a nil reply.
    pub(super) fn forward(
        &self,
        entry: &'static Entry,
        args: &[&[u8]],
        out: &dyn WriteReply,
        nil: lsmkv_status,
    ) -> Result<lsmkv_status> {
        self.forward_with(entry, args, [], out, nil)
    }

    /// Gives a command with these arguments and further ones to where it runs, and fills `out` with
    /// its reply.
    pub(super) fn forward_with<'i>(
        &self,
        entry: &'static Entry,
        args: &[&'i [u8]],
        items: impl IntoIterator<Item = &'i [u8]>,
        out: &dyn WriteReply,
        nil: lsmkv_status,
    ) -> Result<lsmkv_status> {
        let mut argv = Argv::new(entry);
        argv.extend(args);
        items.into_iter().for_each(|item| argv.push(item));
        out.run(self, entry, &argv, nil)
    }

    /// Runs or stores a command whose reply carries no value.
    pub(super) fn run(&self, entry: &'static Entry, argv: &Argv<'_>) -> Result<lsmkv_status> {
        self.reply(entry, argv).map(|_| LSMKV_OK)
    }

    /// Runs a command and returns its reply. A batch stores it and returns `None`.
    pub(super) fn reply(&self, entry: &'static Entry, argv: &Argv<'_>) -> Result<Option<Reply>> {
        argv.with_slices(|argv| match self.place {
            Place::Here(db) => db.run_entry(entry, argv).map(Some),
            Place::Elsewhere(place) => {
                let mut reply = ReplyBuilder::default();
                Ok(place.take(entry, argv, &mut reply)?.then(|| reply.finish()))
            }
        })
    }

    /// Runs a command and writes its reply to `sink`, or stores it. Returns whether it ran.
    pub(super) fn reply_into(
        &self,
        entry: &'static Entry,
        argv: &Argv<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<bool> {
        argv.with_slices(|argv| match self.place {
            Place::Here(db) => db.run_entry_into(entry, argv, sink).map(|()| true),
            Place::Elsewhere(place) => place.take(entry, argv, sink),
        })
    }

    /// Fails on a batch, which only stores writes.
    #[inline]
    pub(super) fn reads(&self) -> Result<()> {
        match self.place {
            Place::Here(_) => Ok(()),
            Place::Elsewhere(place) => place.reads(),
        }
    }

    /// Reads a key: `len` bytes at `data`.
    ///
    /// # Safety
    /// `data` and `len` are as `slice::input` requires, for as long as `'s`.
    pub(super) unsafe fn key<'s>(
        &self,
        name: &str,
        data: *const c_void,
        len: usize,
    ) -> Result<&'s [u8]> {
        // SAFETY: the caller's promise.
        unsafe { input(name, data, len, |len| self.limits.check_key_len(len)) }
    }

    /// Reads a value, field, member or element: `len` bytes at `data`.
    ///
    /// # Safety
    /// `data` and `len` are as `slice::input` requires, for as long as `'s`.
    pub(super) unsafe fn bytes<'s>(
        &self,
        name: &str,
        data: *const c_void,
        len: usize,
    ) -> Result<&'s [u8]> {
        // SAFETY: the caller's promise.
        unsafe { input(name, data, len, |len| self.limits.check_value_len(len)) }
    }

    /// Reads bytes that may be absent; NULL is `None`.
    ///
    /// # Safety
    /// `slice` is NULL or points to a slice that `slice::input` accepts.
    pub(super) unsafe fn optional<'s>(
        &self,
        name: &str,
        slice: *const lsmkv_slice,
    ) -> Result<Option<&'s [u8]>> {
        // SAFETY: the caller's promise.
        let slice = unsafe { slice.as_ref() };
        // SAFETY: the caller's promise.
        slice.map(|slice| unsafe { self.bytes(name, slice.data.cast(), slice.len) }).transpose()
    }

    /// Reads `n` keys, at least one.
    ///
    /// # Safety
    /// `slices` is NULL or points to `n` slices that `slice::input` accepts.
    pub(super) unsafe fn keys<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Items<'s>> {
        // SAFETY: the caller's promise.
        let slices = unsafe { some_slices(name, slices, n, 1)? };
        // SAFETY: the caller's promise.
        slices.iter().map(|it| unsafe { self.key(name, it.data.cast(), it.len) }).collect()
    }

    /// Reads `n` values, fields, members or elements, at least one.
    ///
    /// # Safety
    /// `slices` is NULL or points to `n` slices that `slice::input` accepts.
    pub(super) unsafe fn items<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Items<'s>> {
        // SAFETY: the caller's promise.
        let slices = unsafe { some_slices(name, slices, n, 1)? };
        // SAFETY: the caller's promise.
        slices.iter().map(|it| unsafe { self.bytes(name, it.data.cast(), it.len) }).collect()
    }

    /// Reads `n` pairs of fields and values, at least one, from twice as many slices.
    ///
    /// # Safety
    /// `slices` is NULL or points to `2 * n` slices that `slice::input` accepts.
    pub(super) unsafe fn pairs<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Pairs<'s>> {
        // SAFETY: the caller's promise.
        let slices = unsafe { some_slices(name, slices, n, 2)? };
        let pair = |pair: &[lsmkv_slice]| match pair {
            // SAFETY: the caller's promise.
            [a, b] => unsafe {
                Ok((
                    self.bytes(name, a.data.cast(), a.len)?,
                    self.bytes(name, b.data.cast(), b.len)?,
                ))
            },
            _ => Err(misuse("half a pair")),
        };
        slices.chunks_exact(2).map(pair).collect()
    }

    /// Reads `n` values, perhaps none.
    ///
    /// # Safety
    /// `slices` is NULL or points to `n` slices that `slice::input` accepts.
    pub(super) unsafe fn any_items<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Items<'s>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the caller's promise.
        unsafe { self.items(name, slices, n) }
    }

    /// Reads one number for each of `n` keys; NULL is none.
    ///
    /// # Safety
    /// `numbers` is NULL or points to `n` numbers that nobody writes during the call.
    pub(super) unsafe fn weights<'s>(
        &self,
        name: &str,
        numbers: *const f64,
        n: usize,
    ) -> Result<&'s [f64]> {
        if numbers.is_null() {
            return Ok(&[]);
        }
        // SAFETY: the caller's promise.
        unsafe { array(name, numbers, n) }
    }

    /// Reads `n` operations of BITFIELD, at least one.
    ///
    /// # Safety
    /// `ops` is NULL or points to `n` operations that nobody writes during the call.
    pub(super) unsafe fn field_operations(
        &self,
        name: &str,
        ops: *const lsmkv_bitfield_op,
        n: usize,
    ) -> Result<Vec<BitfieldOp>> {
        if n == 0 {
            return Err(none_of(name));
        }
        // SAFETY: the caller's promise.
        let ops = unsafe { array(name, ops, n)? };
        ops.iter().map(TryInto::try_into).collect()
    }

    /// Reads `n` pairs of keys and values, at least one, from twice as many slices.
    ///
    /// # Safety
    /// `slices` is NULL or points to `2 * n` slices that `slice::input` accepts.
    pub(super) unsafe fn key_pairs<'s>(
        &self,
        name: &str,
        slices: *const lsmkv_slice,
        n: usize,
    ) -> Result<Pairs<'s>> {
        // SAFETY: the caller's promise.
        let pairs = unsafe { self.pairs(name, slices, n)? };
        pairs.iter().try_for_each(|(key, _)| self.limits.check_key(key))?;
        Ok(pairs)
    }
}

fn none_of(name: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("there are no {name}: name at least one"))
}

/// Reads `n` times `each` slices, at least one.
///
/// # Safety
/// `slices` is NULL or points to that many slices that nobody writes during the call.
unsafe fn some_slices<'s>(
    name: &str,
    slices: *const lsmkv_slice,
    n: usize,
    each: usize,
) -> Result<&'s [lsmkv_slice]> {
    if n == 0 {
        return Err(none_of(name));
    }
    // SAFETY: the caller's promise.
    unsafe { array(name, slices, n.saturating_mul(each)) }
}
