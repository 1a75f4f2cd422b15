//! The queue of one subscriber.
//!
//! Publishers append, the subscriber takes. The queue is bounded as Redis bounds the output of
//! pub/sub clients: a subscriber that lets more than the hard limit wait, or more than the soft
//! limit for too long, is cut off. Its messages are dropped, and it learns of it.
//!
//! Threads: any number of publishers, one receiver. Publishers hold the hub's lock, so all
//! subscribers see messages in one order.

use std::collections::VecDeque;
use std::fmt;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind, Result};

/// Roughly the memory that a message takes beside its bytes.
const MESSAGE_BYTES: usize = 96;

/// How much may wait for a slow subscriber. Zero is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// A subscriber for which more bytes wait is cut off at once.
    pub hard_bytes: usize,
    /// A subscriber for which more bytes wait for [`soft_seconds`](Self::soft_seconds) is cut off.
    pub soft_bytes: usize,
    /// The time that a subscriber may exceed the soft limit.
    pub soft_seconds: u64,
}

impl Default for OutputLimits {
    /// Redis's defaults: 32 MiB, or 8 MiB for 60 seconds.
    fn default() -> Self {
        Self { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_seconds: 60 }
    }
}

/// What a subscriber receives. The bytes are shared by all subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A message of a channel.
    Channel { channel: Arc<[u8]>, payload: Arc<[u8]> },
    /// A message of a channel that matches a pattern.
    Pattern { pattern: Arc<[u8]>, channel: Arc<[u8]>, payload: Arc<[u8]> },
    /// A message of a shard channel.
    Shard { channel: Arc<[u8]>, payload: Arc<[u8]> },
    /// Keys that are no longer valid; `None` for all. `by_channel`: as a message of a channel, for a
    /// client of version 2 of the protocol.
    Invalidate { keys: Option<Arc<[Arc<[u8]>]>>, by_channel: bool },
    /// The client that messages are redirected to is gone.
    BrokenRedirect { to: u64 },
}

impl Message {
    /// Whether the message tells of cached keys: such messages follow the reply of the command that
    /// caused them.
    pub(crate) fn is_of_cache(&self) -> bool {
        matches!(self, Self::Invalidate { .. } | Self::BrokenRedirect { .. })
    }

    /// Roughly the bytes that the message takes in an output buffer.
    pub(crate) fn bytes(&self) -> usize {
        MESSAGE_BYTES
            + match self {
                Self::Channel { channel, payload } | Self::Shard { channel, payload } => {
                    channel.len() + payload.len()
                }
                Self::Pattern { pattern, channel, payload } => {
                    pattern.len() + channel.len() + payload.len()
                }
                Self::Invalidate { keys, .. } => {
                    keys.iter().flat_map(|keys| keys.iter()).map(|key| key.len() + 16).sum()
                }
                Self::BrokenRedirect { .. } => 0,
            }
    }
}

/// A message and its bytes on the wire, which all its subscribers share.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) message: Message,
    /// The bytes in version 2 and 3 of the protocol, made when they are first asked for.
    encoded: [OnceLock<Box<[u8]>>; 2],
}

impl From<Message> for Arc<Published> {
    fn from(message: Message) -> Self {
        Self::new(Published { message, encoded: Default::default() })
    }
}

impl Published {
    /// The bytes in version 2 or 3 of the protocol; `encode` makes them once.
    pub(crate) fn encoded(&self, resp3: bool, encode: impl FnOnce(&Message) -> Vec<u8>) -> &[u8] {
        let [version_2, version_3] = &self.encoded;
        let bytes = if resp3 { version_3 } else { version_2 };
        bytes.get_or_init(|| encode(&self.message).into())
    }
}

/// Called when the queue is no longer empty, or has ended. It must not block.
type Wake = Box<dyn Fn() + Send + Sync>;

/// The queue of one subscriber.
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
    /// Roughly the bytes that wait.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Published>>,
    /// Since when more waits than the soft limit.
    over_soft_since: Option<Instant>,
    end: Option<End>,
    /// Whether something happened that is no message: see [`Inbox::nudge`].
    nudged: bool,
    wake: Option<Wake>,
    /// Holds a byte while there is something to receive.
    signal: Option<Signal>,
}

/// Why nothing more arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Too much waited.
    CutOff { bytes: usize },
    /// The handle or the store is closed.
    Closed,
}

struct Signal {
    read: PipeReader,
    write: PipeWriter,
    raised: bool,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { state: Mutex::default(), arrived: Condvar::new(), waiting: AtomicUsize::new(0) }
    }
}

impl Inbox {
    /// Sets the function that is called when there is something to receive.
    pub(crate) fn on_arrival(&self, wake: Wake) {
        let mut state = self.state.lock();
        state.wake = Some(wake);
        if state.has_news() {
            state.wake();
        }
    }

    /// Appends a message. Returns false if the subscriber is cut off, now or before.
    pub(crate) fn push(&self, message: impl Into<Arc<Published>>, limits: &OutputLimits) -> bool {
        let published: Arc<Published> = message.into();
        let mut state = self.state.lock();
        if state.end.is_some() {
            return false;
        }
        let bytes = self.waiting.load(Ordering::Relaxed).saturating_add(published.message.bytes());
        if state.exceeds(bytes, limits) {
            state.end(End::CutOff { bytes });
            self.waiting.store(0, Ordering::Relaxed);
            self.arrived.notify_all();
            return false;
        }
        self.waiting.store(bytes, Ordering::Relaxed);
        let was_empty = state.queue.is_empty();
        state.queue.push_back(published);
        if was_empty {
            state.raise();
            self.arrived.notify_one();
        }
        true
    }

    /// Ends the queue: nothing more arrives, and a receiver learns that the store or the handle is
    /// closed.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        if state.end != Some(End::Closed) {
            state.end(End::Closed);
            self.waiting.store(0, Ordering::Relaxed);
            self.arrived.notify_all();
        }
    }

    /// Begins anew after the subscriber was cut off.
    pub(crate) fn reopen(&self) {
        let mut state = self.state.lock();
        if matches!(state.end, Some(End::CutOff { .. })) {
            state.end = None;
            state.settle();
        }
    }

    /// Takes the next message; `None` if there is none. Fails once the subscriber is cut off or
    /// the store is closed.
    pub(crate) fn take(&self) -> Result<Option<Message>> {
        Ok(self.take_published()?.map(|published| published.message.clone()))
    }

    /// Takes the next message with its bytes, as [`Inbox::take`].
    pub(crate) fn take_published(&self) -> Result<Option<Arc<Published>>> {
        self.take_from(&mut self.state.lock())
    }

    /// Waits for a message until the deadline; for ever without one.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<Option<Message>> {
        let mut state = self.state.lock();
        loop {
            if let Some(published) = self.take_from(&mut state)? {
                return Ok(Some(published.message.clone()));
            }
            match deadline {
                None => self.arrived.wait(&mut state),
                Some(deadline) if Instant::now() >= deadline => return Ok(None),
                Some(deadline) => drop(self.arrived.wait_until(&mut state, deadline)),
            }
        }
    }

    fn take_from(&self, state: &mut State) -> Result<Option<Arc<Published>>> {
        if let Some(end) = state.end {
            return Err(end.error());
        }
        let Some(published) = state.queue.pop_front() else { return Ok(None) };
        self.waiting.fetch_sub(published.message.bytes(), Ordering::Relaxed);
        if state.queue.is_empty() {
            state.settle();
            // A burst must not hold its memory for ever.
            if state.queue.capacity() > 1024 {
                state.queue = VecDeque::new();
            }
        }
        Ok(Some(published))
    }

    /// Makes the descriptor readable though no message has arrived, until [`Inbox::calm`].
    pub(crate) fn nudge(&self) {
        let mut state = self.state.lock();
        state.nudged = true;
        state.raise();
    }

    /// Undoes [`Inbox::nudge`].
    pub(crate) fn calm(&self) {
        let mut state = self.state.lock();
        state.nudged = false;
        state.settle();
    }

    /// Why nothing more arrives, once the subscriber is cut off or the store is closed.
    pub(crate) fn end(&self) -> Option<Error> {
        self.state.lock().end.map(End::error)
    }

    /// Roughly the bytes that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A descriptor that is readable while there is something to receive. It belongs to the inbox:
    /// nobody else reads from it or closes it.
    pub(crate) fn descriptor(&self) -> Result<RawFd> {
        let mut state = self.state.lock();
        if state.signal.is_none() {
            let (read, write) = std::io::pipe()
                .map_err(|error| Error::new(ErrorKind::Io, format!("make a pipe: {error}")))?;
            state.signal = Some(Signal { read, write, raised: false });
            if state.has_news() {
                state.raise();
            }
        }
        let descriptor = state.signal.as_ref().map(|signal| signal.read.as_raw_fd());
        descriptor.ok_or_else(|| Error::new(ErrorKind::Io, "there is no pipe"))
    }
}

impl State {
    fn has_news(&self) -> bool {
        !self.queue.is_empty() || self.end.is_some() || self.nudged
    }

    /// Whether a subscriber for which `bytes` wait is to be cut off.
    fn exceeds(&mut self, bytes: usize, limits: &OutputLimits) -> bool {
        if limits.hard_bytes > 0 && bytes > limits.hard_bytes {
            return true;
        }
        if limits.soft_bytes == 0 || bytes <= limits.soft_bytes {
            self.over_soft_since = None;
            return false;
        }
        let since = *self.over_soft_since.get_or_insert_with(Instant::now);
        since.elapsed() > Duration::from_secs(limits.soft_seconds)
    }

    fn end(&mut self, end: End) {
        self.queue = VecDeque::new();
        self.over_soft_since = None;
        self.end = Some(end);
        self.raise();
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    /// Tells that there is something to receive.
    fn raise(&mut self) {
        self.wake();
        if let Some(signal) = self.signal.as_mut().filter(|signal| !signal.raised) {
            // One byte at most is in the pipe, so this does not block.
            signal.raised = signal.write.write_all(&[1]).is_ok();
        }
    }

    /// Tells that there is nothing to receive, if that is so.
    fn settle(&mut self) {
        if !self.has_news() {
            self.lower();
        }
    }

    /// Tells that there is nothing to receive.
    fn lower(&mut self) {
        if let Some(signal) = self.signal.as_mut().filter(|signal| signal.raised) {
            // The byte that `raise` wrote is there, so this does not block.
            signal.raised = signal.read.read_exact(&mut [0]).is_err();
        }
    }
}

impl End {
    fn error(self) -> Error {
        match self {
            Self::CutOff { bytes } => Error::new(
                ErrorKind::TooLarge,
                format!(
                    "the subscriber was too slow and is cut off: {bytes} bytes waited for it; \
                     subscribe again, and receive more often or raise the limits"
                ),
            ),
            Self::Closed => Error::new(ErrorKind::Closed, "the store or the session is closed"),
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiting", &self.waiting_bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: &str) -> Message {
        Message::Channel { channel: b"c"[..].into(), payload: payload.as_bytes().into() }
    }

    #[test]
    fn messages_come_in_order_and_a_wait_ends_with_the_first() {
        let inbox = Arc::new(Inbox::default());
        assert_eq!(inbox.wait(Some(Instant::now())).unwrap(), None);
        let publisher = Arc::clone(&inbox);
        let thread = std::thread::spawn(move || {
            for text in ["a", "b"] {
                assert!(publisher.push(message(text), &OutputLimits::default()));
            }
        });
        assert_eq!(inbox.wait(None).unwrap(), Some(message("a")));
        thread.join().unwrap();
        assert_eq!(inbox.take().unwrap(), Some(message("b")));
        assert_eq!((inbox.take().unwrap(), inbox.waiting_bytes()), (None, 0));
    }

    #[test]
    fn a_slow_subscriber_is_cut_off_at_the_hard_limit_and_may_begin_anew() {
        let limits = OutputLimits { hard_bytes: 1000, soft_bytes: 0, soft_seconds: 0 };
        let inbox = Inbox::default();
        let pushed = (0..100).take_while(|_| inbox.push(message("xxx"), &limits)).count();
        assert_eq!(pushed, 1000 / message("xxx").bytes());
        assert_eq!(inbox.take().unwrap_err().kind(), ErrorKind::TooLarge);
        assert!(!inbox.push(message("x"), &limits));
        inbox.reopen();
        assert!(inbox.push(message("x"), &limits));
        assert_eq!(inbox.take().unwrap(), Some(message("x")));
    }

    #[test]
    fn the_soft_limit_counts_from_when_it_was_exceeded() {
        let limits = OutputLimits { hard_bytes: 0, soft_bytes: 300, soft_seconds: 0 };
        let inbox = Inbox::default();
        for _ in 0..4 {
            assert!(inbox.push(message("x"), &limits) || inbox.take().is_err());
        }
        std::thread::sleep(Duration::from_millis(2));
        assert!(!inbox.push(message("x"), &limits));
        let patient = OutputLimits { soft_seconds: 60, ..limits };
        inbox.reopen();
        (0..100).for_each(|_| assert!(inbox.push(message("x"), &patient)));
    }

    #[test]
    fn the_descriptor_is_readable_while_something_waits() {
        let inbox = Inbox::default();
        inbox.push(message("a"), &OutputLimits::default());
        let raised = || inbox.state.lock().signal.as_ref().is_some_and(|signal| signal.raised);
        assert!(inbox.descriptor().unwrap() > 0 && raised());
        inbox.push(message("b"), &OutputLimits::default());
        inbox.take().unwrap();
        assert!(raised());
        inbox.take().unwrap();
        assert!(!raised());
        inbox.nudge();
        inbox.push(message("c"), &OutputLimits::default());
        inbox.take().unwrap();
        assert!(raised(), "a message that is taken does not undo the nudge");
        inbox.calm();
        assert!(!raised());
        inbox.close();
        assert!(raised());
        assert_eq!(inbox.wait(None).unwrap_err().kind(), ErrorKind::Closed);
    }
}
