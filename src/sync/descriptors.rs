//! What a forked child must not keep, by descriptor: the locks of stores, the sockets of servers, and
//! connections to stores elsewhere.
//!
//! A forked child has copies of them. As long as it keeps them, the store stays locked and the port
//! taken after its parent has gone, and clients wait for replies that nobody sends. So the handler
//! that runs in the child closes them. It may take no lock, hence this table of bits.
//!
//! Invariants:
//! - A descriptor is listed only while it is open. It is listed after it was opened and taken off the
//!   list before it is closed, so that the child never closes anything else.
//! - Of a descriptor of [`ListedDescriptor::open`] no child has a copy that was made before it was
//!   listed, unless the process forks without a pause.

#[cfg(feature = "server")]
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const WORDS: usize = 64;
const DESCRIPTORS_PER_CHUNK: usize = WORDS * 64;
/// With chunks of 4,096 this covers a million descriptors, the usual limit of a system.
const CHUNKS: usize = 256;

type Chunk = [AtomicU64; WORDS];

static OPEN: [OnceLock<Box<Chunk>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// A descriptor on the list, until this is dropped. It is dropped before the socket.
#[derive(Debug)]
pub(crate) struct Listed(RawFd);

impl Listed {
    pub(crate) fn new(descriptor: RawFd) -> Self {
        if let Some((chunk, word, bit)) = place(descriptor) {
            let chunk = OPEN.get(chunk).map(|chunk| chunk.get_or_init(empty_chunk));
            if let Some(word) = chunk.and_then(|chunk| chunk.get(word)) {
                word.fetch_or(bit, Ordering::SeqCst);
            }
        }
        Self(descriptor)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some((chunk, word, bit)) = place(self.0)
            && let Some(word) =
                OPEN.get(chunk).and_then(OnceLock::get).and_then(|chunk| chunk.get(word))
        {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }
}

/// Makes the process's table of descriptors large enough for `count` more or less at once. Otherwise it
/// grows as they are opened, and in a process with threads each time the thread that opens one waits for
/// the kernel, for up to 20 ms.
#[cfg(feature = "server")]
pub(crate) fn make_room_for_descriptors(count: usize) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST_ROOM);
    let highest = RawFd::try_from(count.min(limit).min(MOST_ROOM).saturating_sub(1));
    let (Ok(file), Ok(highest)) = (File::open("/dev/null"), highest) else { return };
    // The table stays as large when the copy is closed.
    drop(rustix::io::fcntl_dupfd_cloexec(&file, highest));
}

/// Room for more would take memory that few servers need: half a mebibyte.
#[cfg(feature = "server")]
const MOST_ROOM: usize = 64 << 10;

/// How often a descriptor is opened again because of a fork.
const MOST_ATTEMPTS: u32 = 10_000;

/// Forks that have begun and are not over, and those that are over, in this process.
static FORKING: AtomicUsize = AtomicUsize::new(0);
static FORKED: AtomicUsize = AtomicUsize::new(0);

/// Notes that a fork of this process begins. It takes no lock.
pub(crate) fn fork_begins() {
    FORKING.fetch_add(1, Ordering::SeqCst);
}

/// Notes, in the parent, that a fork is over. It takes no lock.
pub(crate) fn fork_ends() {
    FORKED.fetch_add(1, Ordering::SeqCst);
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

/// Notes, in the child, that it has no other thread that forks. It takes no lock.
pub(crate) fn fork_ends_in_child() {
    FORKING.store(0, Ordering::SeqCst);
}

/// An open descriptor that forked children close.
#[derive(Debug)]
pub(crate) struct ListedDescriptor {
    // It is dropped before the descriptor.
    _listed: Listed,
    descriptor: OwnedFd,
}

impl ListedDescriptor {
    /// Opens a descriptor and lists it. If a child was forked in between, that one keeps a copy: the
    /// descriptor is then closed here, and opened anew. In a process that forks without a pause, the
    /// last attempt counts.
    pub(crate) fn open<E>(mut open: impl FnMut() -> Result<OwnedFd, E>) -> Result<Self, E> {
        for _ in 0..MOST_ATTEMPTS {
            let forked = FORKED.load(Ordering::SeqCst);
            let opened = Self::of(open()?);
            // A fork that begins from here on finds it on the list.
            if FORKING.load(Ordering::SeqCst) == 0 && FORKED.load(Ordering::SeqCst) == forked {
                return Ok(opened);
            }
            drop(opened);
            std::thread::yield_now();
        }
        Ok(Self::of(open()?))
    }

    /// Lists a descriptor.
    pub(crate) fn of(descriptor: OwnedFd) -> Self {
        Self { _listed: Listed::new(descriptor.as_raw_fd()), descriptor }
    }
}

impl AsFd for ListedDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn empty_chunk() -> Box<Chunk> {
    Box::new([const { AtomicU64::new(0) }; WORDS])
}

/// The chunk, the word in it and the bit in that of a descriptor.
fn place(descriptor: RawFd) -> Option<(usize, usize, u64)> {
    let number = usize::try_from(descriptor).ok()?;
    let within = number % DESCRIPTORS_PER_CHUNK;
    Some((number / DESCRIPTORS_PER_CHUNK, within / 64, 1 << (within % 64)))
}

/// Calls `close` with every descriptor on the list. It takes no lock and allocates nothing.
pub(crate) fn for_each_descriptor(mut close: impl FnMut(RawFd)) {
    for (at, chunk) in OPEN.iter().enumerate() {
        let Some(chunk) = chunk.get() else { continue };
        for (word_at, word) in chunk.iter().enumerate() {
            let mut bits = word.load(Ordering::SeqCst);
            while bits != 0 {
                let number =
                    at * DESCRIPTORS_PER_CHUNK + word_at * 64 + bits.trailing_zeros() as usize;
                if let Ok(descriptor) = RawFd::try_from(number) {
                    close(descriptor);
                }
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_listed_until_they_are_dropped() {
        // Larger than any that a test opens.
        let numbers = [70_000, 70_063, 70_064, 500_000, 1_048_575];
        let listed: Vec<_> = numbers.map(Listed::new).into();
        let beyond = [Listed::new(-1), Listed::new(RawFd::MAX)];
        let found = || {
            let mut found = Vec::new();
            for_each_descriptor(|descriptor| found.push(descriptor));
            found.retain(|descriptor| *descriptor >= 70_000);
            found
        };
        assert_eq!(found(), numbers);
        drop((listed, beyond));
        assert_eq!(found(), []);
    }

    #[cfg(all(feature = "server", target_os = "linux"))]
    #[test]
    fn the_table_of_descriptors_has_room_once_it_was_made() {
        let room = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
            line.trim().parse().unwrap()
        };
        make_room_for_descriptors(900);
        assert!(room() >= 900, "{}", room());
        make_room_for_descriptors(0);
        make_room_for_descriptors(usize::MAX);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        assert!(room() as u64 >= limit.unwrap_or(u64::MAX).min(MOST_ROOM as u64), "{}", room());
    }

    #[test]
    fn what_was_opened_during_a_fork_is_opened_anew() {
        let mut opened = Vec::new();
        let descriptor = ListedDescriptor::open(|| {
            match opened.len() {
                // The first fork begins and ends meanwhile; the second is not over yet.
                0 => {
                    fork_begins();
                    fork_ends();
                }
                1 => fork_begins(),
                2 => fork_ends(),
                _ => {}
            }
            let file = OwnedFd::from(std::fs::File::open("/dev/null")?);
            opened.push(file.as_raw_fd());
            Ok::<_, std::io::Error>(file)
        });
        assert_eq!(opened.len(), 4);
        assert_eq!(descriptor.unwrap().as_fd().as_raw_fd(), *opened.last().unwrap());
    }
}
