//! TLS for servers and remote stores, by rustls.
//!
//! - `files`: certificates and keys in PEM files;
//! - `server`, `client`: what a side of a connection must show and trusts;
//! - `session`: the TLS of one connection, between its socket and its commands;
//! - `failure`: why a connection was refused, in words that name the way out.
//!
//! Without the cargo feature `tls` nothing of this can be made: `absent` has the same names, and
//! every address that asks for TLS is refused.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(all(feature = "tls", feature = "remote"))]
mod client;
#[cfg(feature = "tls")]
mod failure;
#[cfg(feature = "tls")]
mod files;
#[cfg(all(feature = "tls", feature = "server"))]
mod server;
#[cfg(feature = "tls")]
mod session;

#[cfg(all(not(feature = "tls"), feature = "server"))]
pub(crate) use absent::ServerTls;
#[cfg(not(feature = "tls"))]
pub(crate) use absent::Session;
#[cfg(all(not(feature = "tls"), feature = "remote"))]
pub(crate) use absent::{ClientTls, explain_server};
#[cfg(all(feature = "tls", feature = "remote"))]
pub(crate) use client::ClientTls;
#[cfg(all(feature = "tls", feature = "remote"))]
pub(crate) use failure::explain_server;
#[cfg(all(feature = "tls", feature = "server"))]
pub(crate) use server::ServerTls;
#[cfg(feature = "tls")]
pub(crate) use session::Session;

/// What a client did wrong, of the kinds that a server tells apart in its log.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientFault {
    /// It sent something else than TLS.
    NoTls,
    /// It has no certificate where one is needed, or one that is not accepted.
    Certificate,
    /// Anything else.
    Other,
}
