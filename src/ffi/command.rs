//! Any command by name: one, or several in one call.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::call_inside;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::inside::Inside;
use crate::ffi::on::Items;
use crate::ffi::packed::Packed;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, input, misuse};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};

/// Most arguments of one command.
const MOST_ARGUMENTS: usize = 1 << 31;
/// Most bytes of packed commands in one call.
const MOST_PACKED: usize = 1 << 40;

/// Runs any command by name, as Redis would: argv[0] is the name, and argument number i has
/// lens[i] bytes. *out receives the reply, to be freed by lsmkv_reply_free; an error of the
/// command, such as an unknown name, is a reply of kind LSMKV_REPLY_ERROR with Redis's own text,
/// and the status speaks only of the store. SCAN and its kin use numbers as cursors here.
///
/// On a batch the command is noted, and *out is NULL. MULTI, WATCH, SELECT and the like need a
/// handle of lsmkv_session.
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
        call_inside(db, err, |inside| {
            let out = out.required("out")?;
            let argv = arguments(inside, argc, argv, lens)?;
            if let Some(reply) = inside.command(&argv)? {
                out.set(lsmkv_reply::of(&reply).into_raw());
            }
            Ok(LSMKV_OK)
        })
    }
}

/// Runs several commands in one call: len bytes at commands, for each command its number of
/// arguments and for each argument its length and its bytes; numbers have 32 bits, the low byte
/// first. *out receives an array with the reply of each, to be freed by lsmkv_reply_free. MULTI
/// and EXEC work inside one call; a MULTI without its EXEC is discarded at the end.
///
/// All of the bytes are checked before anything runs. An error of the store ends the call: err
/// says at which command, if there are several, and those before it have run. On a batch the
/// commands are noted, and *out is NULL.
///
/// OK; INVALID: malformed, nothing was run; MISUSE: commands or out is NULL; TOO_LARGE; any of a
/// write.
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
        call_inside(db, err, |inside| {
            let out = out.required("out")?;
            let block = input("commands", commands, len, |len| within("len", len, MOST_PACKED))?;
            if let Some(replies) = run_packed(inside, block)? {
                out.set(replies.into_raw());
            }
            Ok(LSMKV_OK)
        })
    }
}

fn run_packed(inside: &Inside, block: &[u8]) -> Result<Option<lsmkv_reply>> {
    let longest = longest_argument(inside);
    let count = Packed::new(block).check(longest)?;
    let mut packed = Packed::new(block);
    let mut replies = lsmkv_reply::array();
    let mut argv = Items::new();
    let mut noted = false;
    inside.commands(|run| {
        for number in 1..=count {
            argv.clear();
            packed.next(longest, |argument| argv.push(argument))?;
            let reply = run(&argv).map_err(|error| match count {
                1 => error,
                _ => error.wrap(error.kind(), format_args!("command {number} of {count}")),
            })?;
            noted |= reply.is_none();
            reply.iter().for_each(|reply| replies.append(reply));
        }
        Ok(())
    })?;
    Ok((!noted).then_some(replies))
}

/// The arguments of one command.
///
/// # Safety
/// `argv` and `lens` are NULL or point to `argc` elements, and each of `argv` to as many bytes as
/// `lens` says, that nobody writes during the call.
unsafe fn arguments<'a>(
    inside: &Inside,
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
    let longest = longest_argument(inside);
    // SAFETY: not NULL, and argc elements by the caller's promise.
    let (argv, lens) =
        unsafe { (std::slice::from_raw_parts(argv, argc), std::slice::from_raw_parts(lens, argc)) };
    let argument = |(data, len): (&*const u8, &usize)| {
        // SAFETY: the caller's promise.
        unsafe { input("an argument", data.cast(), *len, |len| within("length", len, longest)) }
    };
    argv.iter().zip(lens).map(argument).collect()
}

fn longest_argument(inside: &Inside) -> usize {
    let limits = inside.store().limits();
    usize::try_from(limits.key.max(limits.value)).unwrap_or(usize::MAX)
}

fn within(name: &str, given: usize, most: usize) -> Result<()> {
    if given <= most {
        return Ok(());
    }
    let message = format!("{name} is {given}, more than the {most} that the store accepts");
    Err(Error::new(ErrorKind::TooLarge, message))
}
