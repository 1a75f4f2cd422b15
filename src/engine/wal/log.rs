//! The append side of the log.
//!
//! Invariants:
//! - a group of records goes to one segment, by one write: it fits in what is left of the current
//!   one, or it begins the next, which is as large as the group needs;
//! - every segment after the first of this life begins with a link to the one before it;
//! - before the first byte of a group is written, its segment exists and is durable: a full disk
//!   is noticed while nothing has changed. A failed write afterwards degrades the store;
//! - groups other than those that free space are appended only while the reserve is set aside.
//!
//! Threads: one appends at a time (others would wait), any number wait for durability, one
//! prepares segments in the background. Lock order: `writer`, then `spares` or `retained` or the
//! state of durability.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::engine::files::{FileNumber, log_path};
use crate::engine::wal::durability::Durability;
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::position::{Cut, LogPosition};
use crate::engine::wal::record::{LINK_PAYLOAD_BYTES, RecordKind, encode, encode_link, framed_len};
use crate::engine::wal::segment::{LogEnv, Segment};
use crate::engine::wal::spares::Spares;
use crate::error::{Error, ErrorKind, Result};

/// A buffer that grew beyond this for one group is given back.
const BUFFER_KEPT_BYTES: usize = 4 << 20;

/// From this size on the next segment is made ready early.
const LARGE_SEGMENT_BYTES: u64 = 8 << 20;

/// The log of an open store.
#[derive(Debug)]
pub struct Log {
    env: LogEnv,
    writer: Mutex<Writer>,
    spares: Spares,
    durability: Durability,
    /// Segments before the current one that have not been retired.
    retained: Mutex<Vec<Cut>>,
    /// How many want the segments from each number on to stay. Locked after `retained`.
    kept: Mutex<BTreeMap<FileNumber, usize>>,
    next_due: AtomicBool,
    bytes_appended: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    segment: Segment,
    used: u64,
    buffer: Vec<u8>,
}

impl Log {
    /// Starts a log in a new segment. `older` are the segments recovery wants kept.
    ///
    /// Nothing may be appended before the manifest in force names the cuts of `older`: until
    /// then the next recovery would take the new records for part of the old log.
    pub fn create(env: LogEnv, older: Vec<Cut>) -> Result<Self> {
        let (spares, segment) = Spares::open(&env)?;
        let start = LogPosition::new(segment.number, FILE_HEADER_BYTES);
        let durability =
            Durability::new(start, env.dir.clone(), env.health.clone(), env.sync_file.clone());
        let writer = Writer { segment, used: FILE_HEADER_BYTES, buffer: Vec::new() };
        Ok(Self {
            env,
            writer: Mutex::new(writer),
            spares,
            durability,
            retained: Mutex::new(older),
            kept: Mutex::default(),
            next_due: AtomicBool::new(false),
            bytes_appended: AtomicU64::new(0),
        })
    }

    /// Appends one record a payload, all in one write, and returns where the last one ends. They
    /// have then reached the operating system; see [`Log::wait_durable`] for the device.
    ///
    /// `Full`: the disk had no space for another segment, nothing has changed, try again later.
    /// With `use_reserve` the reserved segment serves first; for groups that will free space.
    pub fn append(&self, payloads: &[&[u8]], use_reserve: bool) -> Result<LogPosition> {
        let needed = group_len(payloads)?;
        if needed == 0 {
            return Ok(self.appended());
        }
        let mut writer = self.writer.lock();
        let synced = self.durability.before_append()?;
        if !use_reserve {
            self.require_reserve()?;
        }
        let link = self.make_room(&mut writer, needed, use_reserve)?;
        let Writer { segment, used, buffer } = &mut *writer;
        let mut place = Place { at: LogPosition::new(segment.number, *used), synced, buffer };
        if let Some(previous) = link {
            place.put(RecordKind::Link, &encode_link(previous));
        }
        payloads.iter().for_each(|payload| place.put(RecordKind::Data, payload));
        self.write(&mut writer)
    }

    /// Whether [`Log::prepare_next`] has something to do: no next segment is ready, and the current
    /// one is half full, or an eighth if it is large. A large one is filled by a busy store, where
    /// making the next may wait for the device as long as filling most of this one takes.
    pub fn needs_preparation(&self) -> bool {
        self.next_due.load(Ordering::Acquire) && !self.spares.has_next()
    }

    /// Whether no space is missing that should have been made ready: on a disk that has become
    /// full, the next segment or the reserve.
    pub fn has_space(&self) -> bool {
        self.spares.has_reserve() && !self.needs_preparation()
    }

    /// Makes the next segment ready, and the reserve if it was used. For a background thread.
    /// A failure changes nothing; after `Full` try again when there may be space.
    pub fn prepare_next(&self) -> Result<()> {
        self.durability.before_append()?;
        self.spares.prepare(&self.env)
    }

    /// Waits until everything before `position` is durable, sharing flushes with others. `false`
    /// when `timeout` passed first; zero only asks. The timeout bounds the wait for others, not a
    /// flush this thread runs itself.
    pub fn wait_durable(&self, position: LogPosition, timeout: Option<Duration>) -> Result<bool> {
        self.durability.wait(position, timeout)
    }

    /// The same for who only wants to know: [`Log::announce_close`] ends it, with `Closed`.
    pub fn wait_until_closing(
        &self,
        position: LogPosition,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.durability.wait_until_closing(position, timeout)
    }

    /// Ends the waits of [`Log::wait_until_closing`]; all else goes on.
    pub fn announce_close(&self) {
        self.durability.announce_close();
    }

    /// Makes everything appended so far durable; returns how far that is.
    pub fn sync_all(&self) -> Result<LogPosition> {
        let end = self.durability.appended();
        self.durability.wait(end, None)?;
        Ok(end)
    }

    /// Everything before this is durable.
    pub fn durable(&self) -> LogPosition {
        self.durability.durable()
    }

    /// Where the last record ends.
    pub fn appended(&self) -> LogPosition {
        self.durability.appended()
    }

    /// Flushes of the device so far.
    pub fn sync_count(&self) -> u64 {
        self.durability.sync_count()
    }

    /// Bytes of records appended so far, framing included.
    pub fn bytes_appended(&self) -> u64 {
        self.bytes_appended.load(Ordering::Relaxed)
    }

    /// The segments in use and where each ends, oldest first, the current one last.
    pub fn segments(&self) -> Vec<Cut> {
        let mut all = self.retained.lock().clone();
        let end = self.durability.appended();
        all.retain(|&(number, cut)| number < end.segment && cut > 0);
        all.push((end.segment, end.offset));
        all
    }

    /// Removes the segments that lie wholly before the segment of `position`, once the manifest
    /// in force says that recovery starts there. The current one always stays, and so do those
    /// that someone wants kept, until a later call. A removal that is not durable does no harm:
    /// recovery ignores what lies before its start.
    pub fn retire_before(&self, position: LogPosition) -> Result<()> {
        let current = self.durability.appended().segment;
        let mut retained = self.retained.lock();
        let kept = self.kept.lock().keys().next().copied();
        let bound = position.segment.min(current).min(kept.unwrap_or(u64::MAX));
        while let Some(&(number, _)) = retained.iter().find(|&&(number, _)| number < bound) {
            self.remove_segment(number)?;
            retained.retain(|&(other, _)| other != number);
        }
        Ok(())
    }

    /// Keeps every segment from that of `position` on, while it is in use now, from removal until
    /// the guard is dropped.
    pub fn keep_from(&self, position: LogPosition) -> KeptLog<'_> {
        *self.kept.lock().entry(position.segment).or_insert(0) += 1;
        KeptLog { log: self, segment: position.segment }
    }

    /// Removes every segment, the current one too: for a clean close, after [`Log::close`], once
    /// the manifest in force says that recovery needs none of them.
    pub fn retire_all(&self) -> Result<()> {
        let current = self.durability.appended().segment;
        self.retire_before(LogPosition::new(current, 0))?;
        self.remove_segment(current)
    }

    /// Wakes all who wait for durability, with `Closed`; nothing is appended any more. Does not
    /// sync. Space held ready is given back.
    pub fn close(&self) {
        self.durability.close();
        let _writer = self.writer.lock();
        self.spares.release(&self.env);
    }

    fn remove_segment(&self, number: u64) -> Result<()> {
        let path = log_path(&self.env.dir, number);
        match self.env.fs.remove(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path, &e))
            }
            _ => Ok(()),
        }
    }

    /// Without the reserve, only groups that free space may go on. A fault other than a full
    /// disk does not stop the others.
    fn require_reserve(&self) -> Result<()> {
        if self.spares.has_reserve() {
            return Ok(());
        }
        match self.spares.restore_reserve(&self.env) {
            Err(error) if error.kind() == ErrorKind::Full => Err(error),
            _ => Ok(()),
        }
    }

    /// Sees to it that the current segment has room for `needed` bytes. If that made a new one
    /// current, returns where the one before it ends.
    fn make_room(
        &self,
        writer: &mut Writer,
        needed: u64,
        use_reserve: bool,
    ) -> Result<Option<LogPosition>> {
        if writer.segment.size - writer.used >= needed {
            return Ok(None);
        }
        let whole = needed + FILE_HEADER_BYTES + framed_len(LINK_PAYLOAD_BYTES as u64);
        let next = self.spares.take(&self.env, whole, use_reserve)?;
        let previous = LogPosition::new(writer.segment.number, writer.used);
        self.retained.lock().push((previous.segment, previous.offset));
        writer.segment = next;
        writer.used = FILE_HEADER_BYTES;
        Ok(Some(previous))
    }

    fn write(&self, writer: &mut Writer) -> Result<LogPosition> {
        let Writer { segment, used, buffer } = writer;
        segment.file.write_all_at(buffer, *used).map_err(|e| {
            let error = Error::io("write", &segment.path(&self.env), &e);
            self.env.health.degrade(&error)
        })?;
        *used += buffer.len() as u64;
        self.bytes_appended.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.durability.after_append(segment, *used);
        let due = segment.size / if segment.size < LARGE_SEGMENT_BYTES { 2 } else { 8 };
        self.next_due.store(*used >= due, Ordering::Release);
        buffer.clear();
        buffer.shrink_to(BUFFER_KEPT_BYTES);
        Ok(LogPosition::new(segment.number, *used))
    }
}

/// See [`Log::keep_from`].
#[derive(Debug)]
pub struct KeptLog<'a> {
    log: &'a Log,
    segment: FileNumber,
}

impl Drop for KeptLog<'_> {
    fn drop(&mut self) {
        let mut kept = self.log.kept.lock();
        if let Some(count) = kept.get_mut(&self.segment) {
            *count -= 1;
            if *count == 0 {
                kept.remove(&self.segment);
            }
        }
    }
}

/// Encodes one record after another.
struct Place<'a> {
    at: LogPosition,
    synced: LogPosition,
    buffer: &'a mut Vec<u8>,
}

impl Place<'_> {
    fn put(&mut self, kind: RecordKind, payload: &[u8]) {
        encode(self.buffer, self.at, kind, self.synced, payload);
        self.at.offset += framed_len(payload.len() as u64);
    }
}

fn group_len(payloads: &[&[u8]]) -> Result<u64> {
    let mut total = 0;
    for payload in payloads {
        if u32::try_from(payload.len()).is_err() {
            let text = format!("a commit of {} bytes is too large for the log", payload.len());
            return Err(Error::new(ErrorKind::TooLarge, text));
        }
        total += framed_len(payload.len() as u64);
    }
    Ok(total)
}

#[cfg(test)]
mod tests;
