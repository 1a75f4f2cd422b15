//! Appends to the log.
//!
//! Invariants:
//! - one write puts a group of records into one segment. If the group does not fit into the rest of
//!   the current segment, it begins the next one, which is as large as the group needs;
//! - every segment after the first since the store was opened begins with a link to the one before
//!   it;
//! - the segment of a group exists and is durable before the first byte of the group is written. So
//!   a full disk is noticed while nothing has changed. A failed write after that degrades the
//!   store;
//! - groups that do not free space are refused while the store is full.
//!
//! Threads: one thread appends at a time, any number wait for durability, and one prepares segments
//! in the background. Lock order: `writer`, then `pool` or `retained` or the state of durability.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::files::{FileNumber, log_path};
use crate::engine::wal::durability::Durability;
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::position::{Cut, LogPosition};
use crate::engine::wal::record::{LINK_PAYLOAD_BYTES, RecordKind, encode, encode_link, framed_len};
use crate::engine::wal::segment::{LogEnv, Segment};
use crate::engine::wal::segment_pool::SegmentPool;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A buffer that has grown beyond this for one group is shrunk again.
const BUFFER_KEPT_BYTES: usize = 4 << 20;

/// From this size on, the next segment is prepared early.
const LARGE_SEGMENT_BYTES: u64 = 8 << 20;

/// The log of an open store.
#[derive(Debug)]
pub struct Log {
    env: LogEnv,
    writer: Mutex<Writer>,
    pool: SegmentPool,
    durability: Durability,
    /// Segments before the current one that were not removed yet.
    retained: Mutex<Vec<Cut>>,
    /// Number of pins per segment: each keeps the segments from its number on. Locked after
    /// `retained`.
    pins: Mutex<BTreeMap<FileNumber, usize>>,
    next_due: AtomicBool,
    bytes_appended: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    /// `None` before the first append if there was no space for a segment.
    segment: Option<Segment>,
    used: u64,
    buffer: Vec<u8>,
}

impl Log {
    /// Starts a log in a new segment. `older` are the segments that recovery still needs.
    ///
    /// Append nothing before the current manifest records the cuts of `older`: until then, the next
    /// recovery would take the new records for part of the old log.
    pub fn create(env: LogEnv, older: Vec<Cut>) -> Result<Self> {
        let (pool, segment) = SegmentPool::open(&env)?;
        let number = segment.as_ref().map_or_else(|| env.numbers.allocate(), |s| s.number);
        let start = LogPosition::new(number, FILE_HEADER_BYTES);
        let durability =
            Durability::new(start, env.dir.clone(), env.health.clone(), env.sync_file.clone());
        let writer = Writer { segment, used: FILE_HEADER_BYTES, buffer: Vec::new() };
        Ok(Self {
            env,
            writer: Mutex::new(writer),
            pool,
            durability,
            retained: Mutex::new(older),
            pins: Mutex::default(),
            next_due: AtomicBool::new(false),
            bytes_appended: AtomicU64::new(0),
        })
    }

    /// Appends one record per payload, all in one write, and returns the end of the last one. The
    /// records have then reached the operating system; [`Log::wait_durable`] waits for the device.
    ///
    /// Fails with `Full` if the disk has no space for another segment, or if the store is full.
    /// Nothing has changed then, and the caller may try again later. With `use_reserve`, for groups
    /// that free space, the reserve is used.
    pub fn append(&self, payloads: &[&[u8]], use_reserve: bool) -> Result<LogPosition> {
        let needed = group_len(payloads)?;
        if needed == 0 {
            return Ok(self.appended());
        }
        let mut writer = self.writer.lock();
        let synced = self.durability.before_append()?;
        if !use_reserve && self.env.space.is_full() {
            self.env.space.reconsider()?;
        }
        let link = self.make_room(&mut writer, needed, use_reserve)?;
        let Writer { segment: Some(segment), used, buffer } = &mut *writer else {
            return Err(Error::new(ErrorKind::Full, "the log has no segment"));
        };
        let mut encoder =
            RecordEncoder { at: LogPosition::new(segment.number, *used), synced, buffer };
        if let Some(previous) = link {
            encoder.put(RecordKind::Link, &encode_link(previous));
        }
        payloads.iter().for_each(|payload| encoder.put(RecordKind::Data, payload));
        self.write(&mut writer)
    }

    /// Whether [`Log::prepare_next`] should be called: no next segment is ready, and the current
    /// one is half full or, if it is large, an eighth. A busy store fills large segments, and
    /// creating the next one may take as long as filling most of this one.
    pub fn needs_preparation(&self) -> bool {
        self.next_due.load(Ordering::Acquire) && !self.pool.has_next()
    }

    /// Creates the next segment, and what is missing of the reserve. A background thread calls this. A
    /// failure changes nothing; after `Full`, try again when there may be space.
    pub fn prepare_next(&self) -> Result<()> {
        self.durability.before_append()?;
        self.pool.prepare(&self.env)
    }

    /// Waits until everything before `position` is durable, and shares flushes with other threads.
    /// Returns `false` if `timeout` passes first; with zero it only checks. The timeout does not
    /// interrupt a flush that this thread runs itself.
    pub fn wait_durable(&self, position: LogPosition, timeout: Option<Duration>) -> Result<bool> {
        self.durability.wait(position, timeout)
    }

    /// Waits until everything before `position` is durable, or `timeout` passes, as
    /// [`Log::wait_durable`]. Fails with `Closed` as soon as [`Log::announce_close`] is called.
    pub fn wait_until_closing(
        &self,
        position: LogPosition,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.durability.wait_until_closing(position, timeout)
    }

    /// Ends the waits of [`Log::wait_until_closing`]. Everything else goes on.
    pub fn announce_close(&self) {
        self.durability.announce_close();
    }

    /// Makes everything appended so far durable, and returns its end.
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

    /// The flushes and who waits for them.
    #[cfg(test)]
    pub(crate) fn durability(&self) -> &Durability {
        &self.durability
    }

    /// Number of flushes of the device so far.
    pub fn sync_count(&self) -> u64 {
        self.durability.sync_count()
    }

    /// Number of bytes of records appended so far, framing included.
    pub fn bytes_appended(&self) -> u64 {
        self.bytes_appended.load(Ordering::Relaxed)
    }

    /// The segments in use with their ends, oldest first, the current one last.
    pub fn segments(&self) -> Vec<Cut> {
        // In this order: a segment is retained before the first record of the next one is appended.
        // The other way round, a segment that ends in between would be missing.
        let end = self.durability.appended();
        let mut all = self.retained.lock().clone();
        all.retain(|&(number, cut)| number < end.segment && cut > 0);
        all.push((end.segment, end.offset));
        all
    }

    /// Removes the segments before the segment of `position`. The current manifest must record that
    /// recovery starts there. The current segment always stays, and pinned segments stay until a
    /// later call. The removal need not be durable, since recovery ignores what is before its
    /// start.
    pub fn retire_before(&self, position: LogPosition) -> Result<()> {
        let current = self.durability.appended().segment;
        let mut retained = self.retained.lock();
        let pins = self.pins.lock().keys().next().copied();
        let bound = position.segment.min(current).min(pins.unwrap_or(u64::MAX));
        while let Some(&(number, _)) = retained.iter().find(|&&(number, _)| number < bound) {
            self.remove_segment(number)?;
            retained.retain(|&(other, _)| other != number);
        }
        Ok(())
    }

    /// Protects the segment of `position` and all later ones from removal, until the pin is
    /// dropped.
    pub fn pin_from(&self, position: LogPosition) -> SegmentPin<'_> {
        *self.pins.lock().entry(position.segment).or_insert(0) += 1;
        SegmentPin { log: self, segment: position.segment }
    }

    /// Removes every segment including the current one, for a clean close. The log must be closed
    /// ([`Log::close`]), and the current manifest must record that recovery needs none of them.
    pub fn retire_all(&self) -> Result<()> {
        let current = self.durability.appended().segment;
        self.retire_before(LogPosition::new(current, 0))?;
        self.remove_segment(current)
    }

    /// Closes the log for appends, ends all waits for durability with `Closed`, and releases the
    /// prepared segment. Does not sync.
    pub fn close(&self) {
        self.durability.close();
        let _writer = self.writer.lock();
        self.pool.release(&self.env);
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

    /// Makes room for `needed` bytes in the current segment. If a new segment became current,
    /// returns the end of the one before it.
    fn make_room(
        &self,
        writer: &mut Writer,
        needed: u64,
        use_reserve: bool,
    ) -> Result<Option<LogPosition>> {
        if writer.segment.as_ref().is_some_and(|segment| segment.size - writer.used >= needed) {
            return Ok(None);
        }
        let whole = needed + FILE_HEADER_BYTES + framed_len(LINK_PAYLOAD_BYTES as u64);
        let next = self.pool.take(&self.env, whole, use_reserve)?;
        let previous = writer.segment.replace(next).map(|full| {
            self.retained.lock().push((full.number, writer.used));
            LogPosition::new(full.number, writer.used)
        });
        writer.used = FILE_HEADER_BYTES;
        Ok(previous)
    }

    fn write(&self, writer: &mut Writer) -> Result<LogPosition> {
        let Writer { segment: Some(segment), used, buffer } = writer else {
            return Err(Error::new(ErrorKind::Full, "the log has no segment"));
        };
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

/// Keeps segments of the log from being removed; see [`Log::pin_from`].
#[derive(Debug)]
pub struct SegmentPin<'a> {
    log: &'a Log,
    segment: FileNumber,
}

impl Drop for SegmentPin<'_> {
    fn drop(&mut self) {
        let mut pins = self.log.pins.lock();
        if let Some(count) = pins.get_mut(&self.segment) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.segment);
            }
        }
    }
}

/// Encodes one record after another.
struct RecordEncoder<'a> {
    at: LogPosition,
    synced: LogPosition,
    buffer: &'a mut Vec<u8>,
}

impl RecordEncoder<'_> {
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
