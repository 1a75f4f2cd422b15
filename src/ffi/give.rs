//! From what a command answers to the caller's output and a status.

use bytes::Bytes;

use crate::commands::{IntoReply, Reply};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, lsmkv_status};

/// An output that takes this answer.
pub(super) trait Give<T> {
    /// Fills the output, if it is wanted; NOT_FOUND if there is nothing to fill it with.
    fn give(&self, answer: T) -> Result<lsmkv_status>;
}

impl Give<i64> for Out<i64> {
    fn give(&self, answer: i64) -> Result<lsmkv_status> {
        self.set(answer);
        Ok(LSMKV_OK)
    }
}

impl Give<bool> for Out<i64> {
    fn give(&self, answer: bool) -> Result<lsmkv_status> {
        self.give(i64::from(answer))
    }
}

impl Give<f64> for Out<f64> {
    fn give(&self, answer: f64) -> Result<lsmkv_status> {
        self.set(answer);
        Ok(LSMKV_OK)
    }
}

impl Give<Bytes> for Out<lsmkv_buf> {
    fn give(&self, answer: Bytes) -> Result<lsmkv_status> {
        if self.is_wanted() {
            self.set(lsmkv_buf::pinning(answer));
        }
        Ok(LSMKV_OK)
    }
}

impl<T: IntoReply> Give<T> for Out<*mut lsmkv_reply> {
    fn give(&self, answer: T) -> Result<lsmkv_status> {
        if self.is_wanted() {
            let flat = lsmkv_reply::of(&answer.into_reply());
            self.set(Box::into_raw(Box::new(flat)));
        }
        Ok(LSMKV_OK)
    }
}

/// What may be missing.
macro_rules! give_maybe {
    ($($answer:ty => $output:ty;)*) => {
        $(impl Give<Option<$answer>> for Out<$output> {
            fn give(&self, answer: Option<$answer>) -> Result<lsmkv_status> {
                answer.map_or(Ok(LSMKV_NOT_FOUND), |answer| self.give(answer))
            }
        })*
    };
}

give_maybe! {
    i64 => i64;
    f64 => f64;
    Bytes => lsmkv_buf;
}

/// An output that takes the reply of a command by name.
pub(super) trait Take {
    /// Fills the output, if it is wanted. NOT_FOUND for nil; without a reply, which is how a batch
    /// answers, the output stays empty.
    fn take(&self, reply: Option<Reply>) -> Result<lsmkv_status>;
}

/// What kind of reply an output takes.
macro_rules! take {
    ($($output:ty: $kind:pat => $value:expr;)*) => {
        $(impl Take for Out<$output> {
            fn take(&self, reply: Option<Reply>) -> Result<lsmkv_status> {
                match reply {
                    None => Ok(LSMKV_OK),
                    Some(Reply::Nil | Reply::NilArray) => Ok(LSMKV_NOT_FOUND),
                    Some($kind) => self.give($value),
                    #[allow(unreachable_patterns, reason = "one output takes every kind")]
                    Some(other) => Err(unexpected(&other)),
                }
            }
        })*
    };
}

take! {
    i64: Reply::Int(number) => number;
    lsmkv_buf: Reply::Bulk(bytes) => bytes;
    *mut lsmkv_reply: reply => reply;
}

fn unexpected(reply: &Reply) -> Error {
    Error::new(ErrorKind::Panic, format!("a command gave a reply of the wrong kind: {reply:?}"))
}

/// A number as text of any precision, which is always one that a command computed.
pub(super) fn number(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// A number as text; a double as the shortest one that stands for it.
pub(super) fn text(number: impl ToString + Copy) -> String {
    number.to_string()
}
