//! A library without TLS: its types have no values, so no code behind them can run.

use std::io::{self, Read, Write};

#[cfg(feature = "server")]
use super::ClientFault;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

fn unsupported() -> Error {
    let text =
        "this library was built without TLS (cargo feature tls): use redis://, tcp: or unix:";
    Error::new(ErrorKind::Unsupported, text)
}

/// The TLS of a connection.
#[derive(Debug)]
pub(crate) enum Session {}

impl Session {
    pub(crate) fn read<S: Read + Write>(&mut self, _: &mut S, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn write<S: Write>(&mut self, _: &mut S, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn flush<S: Write>(&mut self, _: &mut S) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn close<S: Write>(&mut self, _: &mut S) {
        match *self {}
    }

    pub(crate) fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub(crate) fn may_have_more(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn has_arrived(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn receive<S: Read + Write>(&mut self, _: &mut S) -> io::Result<bool> {
        match *self {}
    }

    #[cfg(feature = "server")]
    pub(crate) fn fault(&self) -> Option<(ClientFault, String)> {
        match *self {}
    }
}

/// What a server shows and asks for.
#[cfg(feature = "server")]
#[derive(Clone, Debug)]
pub(crate) enum ServerTls {}

#[cfg(feature = "server")]
impl ServerTls {
    pub(crate) fn from_options(_: &Options) -> Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn session(&self) -> io::Result<Session> {
        match *self {}
    }
}

/// What a client shows and trusts.
#[cfg(feature = "remote")]
#[derive(Clone, Debug)]
pub(crate) enum ClientTls {}

#[cfg(feature = "remote")]
impl ClientTls {
    pub(crate) fn from_options(_: &Options) -> Result<Self> {
        Err(unsupported())
    }

    pub(crate) fn connect<S: Read + Write>(
        &self,
        _: &str,
        _: &mut S,
        _: impl FnMut(&S) -> io::Result<bool>,
    ) -> io::Result<Session> {
        match *self {}
    }
}

/// The error of a connection, if TLS has one to explain.
#[cfg(feature = "remote")]
pub(crate) fn explain_server(_: &str, _: &io::Error) -> Option<Error> {
    None
}
