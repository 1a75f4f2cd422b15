//! Typed calls over commands by name: which types replies become, and how stores and sessions run them.
//!
//! `generated::typed` has the methods. They work on stores of other processes too, so a reply may
//! come from any server: what has not the form that belongs to the command is an error.

use std::time::Duration;

use bytes::Bytes;

use super::dispatch::known;
use super::entry::Entry;
use super::generated::{Commands, SessionCommands};
use super::reply::Reply;
#[cfg(feature = "remote")]
use super::reply_builder::ReplyBuilder;
use super::session::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Db;
use crate::types::number::parse_float;

/// A type that a reply can become. A reply of another form is given back.
pub(super) trait FromReply: Sized {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply>;
}

/// The reply of a command as what its typed method returns.
pub(super) fn typed<T: FromReply>(reply: Result<Reply>) -> Result<T> {
    T::from_reply(reply?).map_err(|reply| match reply {
        Reply::Error(text) => Error::new(ErrorKind::Invalid, text),
        other => Error::new(ErrorKind::Invalid, format!("an unexpected reply: {other:?}")),
    })
}

/// How long a call waits, as commands spell it. Zero would be for ever, which no limit is.
pub(super) fn seconds(limit: Option<Duration>) -> String {
    let shortest = Duration::from_millis(1);
    limit.map_or(0.0, |limit| limit.max(shortest).as_secs_f64()).to_string()
}

impl Commands for Db {
    fn call(&self, argv: &[&[u8]]) -> Result<Reply> {
        self.run_entry(entry_of(argv)?, argv)
    }
}

impl SessionCommands for Session {
    fn call(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        outside_multi(self.in_multi())?;
        entry_of(argv)?;
        self.execute(argv)
    }
}

/// Runs a command by its words where `run` takes it with its entry.
#[cfg(feature = "remote")]
pub(crate) fn by_entry(
    argv: &[&[u8]],
    run: impl FnOnce(&'static Entry, &mut ReplyBuilder) -> Result<()>,
) -> Result<Reply> {
    let entry = entry_of(argv)?;
    ReplyBuilder::collect(|reply| run(entry, reply))
}

/// Runs a command of a session by its words, unless the session queues commands.
#[cfg(feature = "remote")]
pub(crate) fn by_entry_outside_multi(
    in_multi: bool,
    argv: &[&[u8]],
    run: impl FnOnce(&'static Entry, &mut ReplyBuilder) -> Result<()>,
) -> Result<Reply> {
    outside_multi(in_multi)?;
    by_entry(argv, run)
}

fn outside_multi(in_multi: bool) -> Result<()> {
    match in_multi {
        true => {
            let text = "after MULTI commands are given to `command`, to EXEC";
            Err(Error::new(ErrorKind::Misuse, text))
        }
        false => Ok(()),
    }
}

fn entry_of(argv: &[&[u8]]) -> Result<&'static Entry> {
    let unknown = "a command that this library does not know is run by `command`";
    known(argv)?.ok_or_else(|| Error::new(ErrorKind::Unsupported, unknown))
}

/// Implements [`FromReply`] by patterns.
macro_rules! from_reply {
    ($($type:ty: $($form:pat => $value:expr),+;)*) => {
        $(impl FromReply for $type {
            fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
                match reply {
                    $($form => Ok($value),)+
                    other => Err(other),
                }
            }
        })*
    };
}

from_reply! {
    i64: Reply::Int(number) => number;
    bool: Reply::Int(number) => number != 0, Reply::Bool(yes) => yes;
    Bytes: Reply::Bulk(bytes) => bytes, Reply::Text(bytes) => bytes,
        Reply::Verbatim(_, bytes) => bytes;
}

impl FromReply for () {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        match reply {
            error @ Reply::Error(_) => Err(error),
            _ => Ok(()),
        }
    }
}

impl FromReply for Reply {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        match reply {
            error @ Self::Error(_) => Err(error),
            other => Ok(other),
        }
    }
}

/// A number, also as text: so servers send it that speak RESP2, and commands such as INCRBYFLOAT.
impl FromReply for f64 {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        match reply {
            Reply::Double(number) => Ok(number),
            Reply::Bulk(text) => parse_float(&text).map_err(|_| Reply::Bulk(text)),
            other => Err(other),
        }
    }
}

impl FromReply for String {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        let bytes = Bytes::from_reply(reply)?;
        Ok(Self::from_utf8_lossy(&bytes).into_owned())
    }
}

impl<T: FromReply> FromReply for Option<T> {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        match reply {
            Reply::Nil | Reply::NilArray => Ok(None),
            other => T::from_reply(other).map(Some),
        }
    }
}

/// Elements. Those that are pairs may be so in three ways: as such, each an array, or in one array.
impl<T: FromElement> FromReply for Vec<T> {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        match reply {
            Reply::Array(items) | Reply::Set(items) => T::from_items(items),
            Reply::Map(pairs) | Reply::Pairs(pairs) => {
                let pair = |(a, b)| T::from_items(vec![a, b]);
                let pairs: std::result::Result<Vec<_>, _> = pairs.into_iter().map(pair).collect();
                Ok(pairs?.into_iter().flatten().collect())
            }
            other => Err(other),
        }
    }
}

/// A type that elements of a reply can become.
pub(super) trait FromElement: Sized {
    fn from_items(items: Vec<Reply>) -> std::result::Result<Vec<Self>, Reply>;
}

macro_rules! one_by_one {
    ($($type:ty),*) => {
        $(impl FromElement for $type {
            fn from_items(items: Vec<Reply>) -> std::result::Result<Vec<Self>, Reply> {
                items.into_iter().map(Self::from_reply).collect()
            }
        })*
    };
}

one_by_one!(Bytes, Option<Bytes>, Option<f64>, bool);

impl<A: FromReply, B: FromReply> FromElement for (A, B) {
    fn from_items(items: Vec<Reply>) -> std::result::Result<Vec<Self>, Reply> {
        let nested = |item: &Reply| matches!(item, Reply::Array(pair) if pair.len() == 2);
        if items.iter().all(nested) {
            return items.into_iter().map(Self::from_reply).collect();
        }
        let mut items = items.into_iter();
        let mut pairs = Vec::with_capacity(items.len() / 2);
        while let Some(first) = items.next() {
            let second = items.next().unwrap_or(Reply::Nil);
            pairs.push((A::from_reply(first)?, B::from_reply(second)?));
        }
        Ok(pairs)
    }
}

/// One pair, such as a key and an element.
impl<A: FromReply, B: FromReply> FromReply for (A, B) {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        let Reply::Array(items) = reply else { return Err(reply) };
        match <[Reply; 2]>::try_from(items) {
            Ok([a, b]) => Ok((A::from_reply(a)?, B::from_reply(b)?)),
            Err(items) => Err(Reply::Array(items)),
        }
    }
}

impl<A: FromReply, B: FromReply, C: FromReply> FromReply for (A, B, C) {
    fn from_reply(reply: Reply) -> std::result::Result<Self, Reply> {
        let Reply::Array(items) = reply else { return Err(reply) };
        match <[Reply; 3]>::try_from(items) {
            Ok([a, b, c]) => Ok((A::from_reply(a)?, B::from_reply(b)?, C::from_reply(c)?)),
            Err(items) => Err(Reply::Array(items)),
        }
    }
}

#[cfg(test)]
mod tests;
