//! Exported functions that run any command by name: one, or several in one call.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::handle_call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::handle_kind::HandleKind;
use crate::ffi::packed::Packed;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::reply_writer::ReplyWriter;
use crate::ffi::slice::{Out, input, misuse};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::ffi::target::Items;

/// The largest number of arguments of one command.
const MOST_ARGUMENTS: usize = 1 << 31;
/// The largest number of bytes of packed commands in one call: 4 GiB. A larger length is a mistake,
/// and reading that far would end the process.
const MOST_PACKED: usize = 1 << 32;

/// Runs any command by name. argv[0] is the name, and argument i has lens[i] bytes. *out receives
/// the reply; free it with lsmkv_reply_free. An error of the command, such as an unknown name, is a
/// reply of kind LSMKV_REPLY_ERROR with Redis's own text. The status reports only errors of the
/// store. SCAN, HSCAN, SSCAN and ZSCAN use numbers as cursors here.
///
/// On a batch the command is stored, and *out is NULL. Commands of a connection, such as MULTI,
/// WATCH and SELECT, need a handle of lsmkv_session.
///
/// OK; INVALID: argc is 0; MISUSE: argv, lens, out or an argument is NULL, or the command needs a
/// session; TOO_LARGE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_command(
    db: *mut lsmkv_db,
    argc: usize,
    argv: *const *const u8,
    lens: *const usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        handle_call(db, err, |handle| {
            let out = out.required("out")?;
            let argv = arguments(handle, argc, argv, lens)?;
            let mut reply = ReplyWriter::default();
            if handle.command(&argv, &mut reply)? {
                out.finish(reply);
            }
            Ok(LSMKV_OK)
        })
    }
}

/// Runs several commands in one call. `commands` points to len bytes: for each command the number
/// of its arguments, and for each argument its length and its bytes. Numbers have 32 bits, low byte
/// first. *out receives an array with one reply per command; free it with lsmkv_reply_free. MULTI
/// and EXEC work within one call; a MULTI without EXEC is discarded at the end.
///
/// All bytes are checked before anything runs. An error of the store ends the call. If there are
/// several commands, err names the one that failed; those before it have run. On a batch the
/// commands are stored, and *out is NULL.
///
/// OK; INVALID: malformed, nothing was run; MISUSE: commands or out is NULL; TOO_LARGE: over 4 GiB;
/// any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_command_packed(
    db: *mut lsmkv_db,
    commands: *const c_void,
    len: usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        handle_call(db, err, |handle| {
            let out = out.required("out")?;
            let block = input("commands", commands, len, |len| within("len", len, MOST_PACKED))?;
            if let Some(replies) = run_packed(handle, block)? {
                out.finish(replies);
            }
            Ok(LSMKV_OK)
        })
    }
}

/// Runs one command, packed as for lsmkv_command_packed, on a session and does not wait. A command
/// that would wait for an element, such as BLPOP, returns TIMEOUT instead, whatever its own time
/// limit; lsmkv_session_fd then becomes readable when one of its keys may hold an element: call this
/// again. The next command on the session ends that. *out receives the reply; free it with
/// lsmkv_reply_free.
///
/// The element is popped during a call and given to its caller, never before. So a program that
/// gives up loses none, and others who wait may be served first though they came later.
///
/// OK; TIMEOUT: it would wait; INVALID: malformed, or not one command; UNSUPPORTED: no session;
/// MISUSE: command or out is NULL; TOO_LARGE: over 4 GiB; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_command_nowait(
    session: *mut lsmkv_db,
    command: *const c_void,
    len: usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        handle_call(session, err, |handle| {
            let out = out.required("out")?;
            handle.runs_commands()?;
            let block = input("command", command, len, |len| within("len", len, MOST_PACKED))?;
            let longest = longest_argument(handle);
            let count = Packed::new(block).check(longest)?;
            if count != 1 {
                let text =
                    format!("there are {count} commands: one at a time is run without waiting");
                return Err(Error::new(ErrorKind::Invalid, text));
            }
            let mut argv = Items::new();
            Packed::new(block).next(longest, |argument| argv.push(argument))?;
            let mut reply = ReplyWriter::default();
            #[cfg(feature = "remote")]
            if let Some(remote) = handle.remote() {
                return Err(remote.unsupported("a command that does not wait"));
            }
            #[cfg(all(feature = "remote", feature = "server"))]
            if let Some(shared) = handle.shared() {
                if !shared.command_nowait(&argv, &mut reply)? {
                    return Err(would_wait());
                }
                out.finish(reply);
                return Ok(LSMKV_OK);
            }
            if !handle.session()?.command_nowait(&argv, &mut reply)? {
                return Err(would_wait());
            }
            out.finish(reply);
            Ok(LSMKV_OK)
        })
    }
}

fn would_wait() -> Error {
    Error::new(ErrorKind::Timeout, "all keys are empty: the command would wait for an element")
}

fn run_packed(handle: &HandleKind, block: &[u8]) -> Result<Option<ReplyWriter>> {
    let longest = longest_argument(handle);
    let count = Packed::new(block).check(longest)?;
    let mut packed = Packed::new(block);
    let mut replies = ReplyWriter::array();
    #[cfg(feature = "remote")]
    if let Some(remote) = handle.remote() {
        let commands = (0..count).map(|_| {
            let mut argv = Items::new();
            packed.next(longest, |argument| argv.push(argument))?;
            Ok(argv)
        });
        let ran = remote.commands(commands, &mut replies)?;
        return Ok(ran.then_some(replies));
    }
    #[cfg(all(feature = "remote", feature = "server"))]
    if let Some(shared) = handle.shared() {
        let mut commands = Vec::with_capacity(count);
        for _ in 0..count {
            let mut argv = Items::new();
            packed.next(longest, |argument| argv.push(argument))?;
            commands.push(argv);
        }
        return shared.commands(&commands);
    }
    let mut argv = Items::new();
    let mut ran = true;
    handle.commands(|run| {
        for number in 1..=count {
            argv.clear();
            packed.next(longest, |argument| argv.push(argument))?;
            ran &= run(&argv, &mut replies).map_err(|error| error.of_command(number, count))?;
            replies.count_reply();
        }
        Ok(())
    })?;
    Ok(ran.then_some(replies))
}

/// Reads the arguments of one command.
///
/// # Safety
/// `argv` and `lens` are NULL or point to `argc` elements. Each element of `argv` points to as many
/// bytes as `lens` says, and nobody writes them during the call.
unsafe fn arguments<'a>(
    handle: &HandleKind,
    argc: usize,
    argv: *const *const u8,
    lens: *const usize,
) -> Result<Items<'a>> {
    if argc == 0 {
        return Err(Error::new(ErrorKind::Invalid, "argc is 0: a command needs a name"));
    }
    within("argc", argc, MOST_ARGUMENTS)?;
    if argv.is_null() || lens.is_null() {
        return Err(misuse(format_args!("argv or lens is NULL but argc is {argc}")));
    }
    let longest = longest_argument(handle);
    // SAFETY: not NULL, and argc elements by the caller's promise.
    let (argv, lens) =
        unsafe { (std::slice::from_raw_parts(argv, argc), std::slice::from_raw_parts(lens, argc)) };
    let argument = |(data, len): (&*const u8, &usize)| {
        // SAFETY: the caller's promise.
        unsafe { input("an argument", data.cast(), *len, |len| within("length", len, longest)) }
    };
    argv.iter().zip(lens).map(argument).collect()
}

fn longest_argument(handle: &HandleKind) -> usize {
    let limits = handle.limits();
    usize::try_from(limits.key.max(limits.value)).unwrap_or(usize::MAX)
}

fn within(name: &str, given: usize, most: usize) -> Result<()> {
    if given <= most {
        return Ok(());
    }
    let message = format!("{name} is {given}, more than the {most} that the store accepts");
    Err(Error::new(ErrorKind::TooLarge, message))
}
