//! A client of a shared store beside a client of a redis-server, both through Unix sockets.

use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use crate::load::{CALLS, KINDS, VALUE, bare, key};
use crate::processes::{Process, pin_self};
use crate::{LEAST_SPEED, ROUNDS, Result, median};

// The functions that programs in C call; linked with the library.
unsafe extern "C" {
    fn lsmkv_options_new() -> *mut c_void;
    fn lsmkv_options_set(
        options: *mut c_void,
        name: *const c_char,
        value: *const c_char,
        err: *mut c_void,
    ) -> i32;
    fn lsmkv_open(
        path: *const c_char,
        options: *const c_void,
        db: *mut *mut c_void,
        err: *mut c_void,
    ) -> i32;
    fn lsmkv_command(
        db: *mut c_void,
        argc: usize,
        argv: *const *const u8,
        lens: *const usize,
        out: *mut *mut c_void,
        err: *mut c_void,
    ) -> i32;
    fn lsmkv_command_packed(
        db: *mut c_void,
        commands: *const c_void,
        len: usize,
        out: *mut *mut c_void,
        err: *mut c_void,
    ) -> i32;
    fn lsmkv_reply_free(reply: *mut c_void);
}

/// The processors of the server and of the client: they share one, or have one each.
const PLACEMENTS: [(&str, &str, &str); 2] = [("together", "0", "0"), ("apart", "0", "1")];

/// A handle of a shared store, as a program in C has it.
struct Shared(*mut c_void);

impl Shared {
    fn open(directory: &Path) -> Result<Self> {
        let path = CString::new(directory.as_os_str().as_bytes())?;
        let mut db = null_mut();
        // SAFETY: the strings end with a zero, and the options are those that were made.
        let status = unsafe {
            let options = lsmkv_options_new();
            lsmkv_options_set(options, c"shared".as_ptr(), c"on".as_ptr(), null_mut());
            lsmkv_open(path.as_ptr(), options, &raw mut db, null_mut())
        };
        if status == 0 { Ok(Self(db)) } else { Err(format!("lsmkv_open: {status}").into()) }
    }

    fn command(&self, argv: &[&[u8]]) -> Result<()> {
        let words: Vec<*const u8> = argv.iter().map(|word| word.as_ptr()).collect();
        let lens: Vec<usize> = argv.iter().map(|word| word.len()).collect();
        let mut reply = null_mut();
        // SAFETY: the words live until the call returns, and the reply is freed once.
        let status = unsafe {
            let (words, lens) = (words.as_ptr(), lens.as_ptr());
            lsmkv_command(self.0, argv.len(), words, lens, &raw mut reply, null_mut())
        };
        freed(status, reply)
    }

    fn commands(&self, packed: &[u8]) -> Result<()> {
        let mut reply = null_mut();
        let commands = if packed.is_empty() { null() } else { packed.as_ptr().cast() };
        // SAFETY: the bytes live until the call returns, and the reply is freed once.
        let status = unsafe {
            lsmkv_command_packed(self.0, commands, packed.len(), &raw mut reply, null_mut())
        };
        freed(status, reply)
    }

    /// The time of a round.
    fn timed(&self, writes: bool, together: usize) -> Result<Duration> {
        let begun = Instant::now();
        let mut packed = Vec::new();
        for call in 0..CALLS / together {
            packed.clear();
            for number in 0..together {
                let key = key(call * together + number);
                let argv: &[&[u8]] = match writes {
                    true => &[b"SET", key.as_bytes(), VALUE],
                    false => &[b"GET", key.as_bytes()],
                };
                if together == 1 {
                    self.command(argv)?;
                } else {
                    pack(&mut packed, argv);
                }
            }
            if together > 1 {
                self.commands(&packed)?;
            }
        }
        Ok(begun.elapsed())
    }
}

fn freed(status: i32, reply: *mut c_void) -> Result<()> {
    // SAFETY: a reply of a call that succeeded, or NULL.
    unsafe { lsmkv_reply_free(reply) };
    if status == 0 { Ok(()) } else { Err(format!("a call gave {status}").into()) }
}

/// Appends a command as `lsmkv_command_packed` takes it.
fn pack(packed: &mut Vec<u8>, argv: &[&[u8]]) {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    packed.extend_from_slice(&number(argv.len()));
    for word in argv {
        packed.extend_from_slice(&number(word.len()));
        packed.extend_from_slice(word);
    }
}

/// Whether a client of a shared store is as fast as it should be.
pub(crate) fn compare() -> Result<bool> {
    let own = std::env::current_exe()?;
    let holder = Process::start_on("SHARED", |directory| {
        let mut command = Command::new(own);
        command.arg("hold").arg(directory);
        command
    })?;
    let redis = Process::start(|directory| {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "yes", "--unixsocket"]);
        command.arg(directory.join("socket")).arg("--dir").arg(directory);
        command
    })?;
    let shared = Shared::open(holder.directory())?;
    let mut connection = redis.connect()?;
    let mut held = true;
    println!(
        "a shared store, as a multiple of the speed of redis-server (at least {LEAST_SPEED}):"
    );
    for (name, writes, together) in KINDS {
        // The best of the placements, of ours and of theirs.
        let mut best = (f64::MAX, f64::MAX);
        let mut where_best = ("", "");
        for (placement, of_server, of_client) in PLACEMENTS {
            holder.pin(of_server)?;
            redis.pin(of_server)?;
            pin_self(of_client)?;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                theirs.push(bare(&mut connection, writes, together)?.as_secs_f64());
                ours.push(shared.timed(writes, together)?.as_secs_f64());
            }
            let (ours, theirs) = (median(ours), median(theirs));
            if ours < best.0 {
                (best.0, where_best.0) = (ours, placement);
            }
            if theirs < best.1 {
                (best.1, where_best.1) = (theirs, placement);
            }
        }
        let ratio = best.1 / best.0;
        held &= ratio >= LEAST_SPEED;
        let each = |time: f64| time * 1e6 / CALLS as f64;
        println!(
            "  {name}, {together} a call: {ratio:.2} ({:.2} us a command {}, redis {:.2} {})",
            each(best.0),
            where_best.0,
            each(best.1),
            where_best.1
        );
    }
    Ok(held)
}
