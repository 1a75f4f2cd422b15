//! Fills the caller's outputs with the result of a command, and returns the status.

use bytes::Bytes;

use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::argv::Argv;
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::reply_writer::ReplyWriter;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, lsmkv_status};
use crate::ffi::target::CommandTarget;
use crate::txn::Tx;

/// An output that receives what a method returns.
pub(super) trait WriteOutput<T> {
    /// Fills the output, if it is wanted. Returns NOT_FOUND if there is no value.
    fn write(&self, answer: T) -> Result<lsmkv_status>;
}

impl WriteOutput<i64> for Out<i64> {
    fn write(&self, answer: i64) -> Result<lsmkv_status> {
        self.set(answer);
        Ok(LSMKV_OK)
    }
}

impl WriteOutput<bool> for Out<i64> {
    fn write(&self, answer: bool) -> Result<lsmkv_status> {
        self.write(i64::from(answer))
    }
}

impl WriteOutput<f64> for Out<f64> {
    fn write(&self, answer: f64) -> Result<lsmkv_status> {
        self.set(answer);
        Ok(LSMKV_OK)
    }
}

impl WriteOutput<Bytes> for Out<lsmkv_buf> {
    fn write(&self, answer: Bytes) -> Result<lsmkv_status> {
        if self.is_wanted() {
            self.set(lsmkv_buf::pinning(answer));
        }
        Ok(LSMKV_OK)
    }
}

/// Implements [`WriteOutput`] for results that may be missing.
macro_rules! write_maybe {
    ($($answer:ty => $output:ty;)*) => {
        $(impl WriteOutput<Option<$answer>> for Out<$output> {
            fn write(&self, answer: Option<$answer>) -> Result<lsmkv_status> {
                answer.map_or(Ok(LSMKV_NOT_FOUND), |answer| self.write(answer))
            }
        })*
    };
}

write_maybe! {
    i64 => i64;
    f64 => f64;
    Bytes => lsmkv_buf;
}

/// An output that receives the reply of a command.
pub(super) trait WriteReply {
    /// Runs a command and fills the output, if it is wanted. `nil` is the status of a nil reply. A
    /// batch stores the command and leaves the output empty.
    fn run(
        &self,
        target: &CommandTarget<'_>,
        entry: &'static Entry,
        argv: &Argv<'_>,
        nil: lsmkv_status,
    ) -> Result<lsmkv_status>;
}

/// The output of a function that returns only its status.
pub(super) struct Nothing;

impl WriteReply for Nothing {
    fn run(
        &self,
        target: &CommandTarget<'_>,
        entry: &'static Entry,
        argv: &Argv<'_>,
        _nil: lsmkv_status,
    ) -> Result<lsmkv_status> {
        target.run(entry, argv)
    }
}

/// Implements [`WriteReply`] for outputs of one value: the reply kinds, and how each fills the
/// output.
macro_rules! write_reply {
    ($($output:ty: $($kind:pat => $value:expr),+;)*) => {
        $(impl WriteReply for Out<$output> {
            fn run(
                &self,
                target: &CommandTarget<'_>,
                entry: &'static Entry,
                argv: &Argv<'_>,
                nil: lsmkv_status,
            ) -> Result<lsmkv_status> {
                match target.reply(entry, argv)? {
                    None => Ok(LSMKV_OK),
                    Some(Reply::Nil | Reply::NilArray) => Ok(nil),
                    $(Some($kind) => self.write($value),)+
                    Some(other) => Err(unexpected(&other)),
                }
            }
        })*
    };
}

write_reply! {
    i64: Reply::Int(number) => number;
    f64: Reply::Double(number) => number, Reply::Bulk(text) => number(&text);
    lsmkv_buf: Reply::Bulk(bytes) => bytes;
}

impl WriteReply for Out<*mut lsmkv_reply> {
    fn run(
        &self,
        target: &CommandTarget<'_>,
        entry: &'static Entry,
        argv: &Argv<'_>,
        nil: lsmkv_status,
    ) -> Result<lsmkv_status> {
        let mut reply = ReplyWriter::default();
        if !target.reply_into(entry, argv, &mut reply)? {
            return Ok(LSMKV_OK);
        }
        if reply.is_nil() {
            return Ok(nil);
        }
        self.finish(reply);
        Ok(LSMKV_OK)
    }
}

impl Out<*mut lsmkv_reply> {
    /// Fills the output with what `read` writes element by element.
    pub(super) fn stream(
        &self,
        target: &CommandTarget<'_>,
        read: impl FnOnce(&mut Tx<'_>, &mut dyn ReplySink) -> Result<()>,
    ) -> Result<lsmkv_status> {
        let mut reply = ReplyWriter::default();
        target.db()?.read(|tx| read(tx, &mut reply))?;
        self.finish(reply);
        Ok(LSMKV_OK)
    }

    /// Fills the output, if it is wanted, with what `write` writes.
    pub(super) fn fill(&self, write: impl FnOnce(&mut dyn ReplySink)) -> Result<lsmkv_status> {
        if self.is_wanted() {
            let mut reply = ReplyWriter::default();
            write(&mut reply);
            self.finish(reply);
        }
        Ok(LSMKV_OK)
    }

    /// Fills the output, if it is wanted.
    pub(super) fn finish(&self, reply: ReplyWriter) {
        if self.is_wanted() {
            self.set(reply.finish().into_raw());
        }
    }
}

pub(super) fn unexpected(reply: &Reply) -> Error {
    Error::new(ErrorKind::Panic, format!("a command gave a reply of the wrong kind: {reply:?}"))
}

/// Parses a number of any precision. A command computed the text, so it is always a number.
pub(super) fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
