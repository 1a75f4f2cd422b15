//! Connections to one server that no call uses at the moment.
//!
//! The lock is the standard library's: a child that is forked from a program with an open store
//! may use it, which is not so for parking_lot (see `ffi::fork`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::address::Endpoint;
use super::connection::{Connection, Login};
use crate::error::Result;

/// The number of idle connections that are kept.
const MOST_IDLE: usize = 64;

/// The connections to one server.
#[derive(Debug)]
pub(super) struct Pool {
    endpoint: Endpoint,
    login: Login,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(endpoint: Endpoint, login: Login) -> Self {
        Self { endpoint, login, idle: Mutex::default() }
    }

    /// Takes an idle connection, or opens one.
    pub(super) fn take(&self) -> Result<Connection> {
        loop {
            let Some(mut connection) = self.idle().pop() else {
                return Connection::open(&self.endpoint, &self.login);
            };
            if connection.is_idle() {
                return Ok(connection);
            }
        }
    }

    /// Opens a connection that no other call has used.
    pub(super) fn fresh(&self) -> Result<Connection> {
        // The server has closed one: the others are likely to be closed too.
        self.idle().clear();
        Connection::open(&self.endpoint, &self.login)
    }

    /// Gives a connection back, if another call can use it.
    pub(super) fn give_back(&self, connection: Connection) {
        if connection.is_usable() {
            let mut idle = self.idle();
            if idle.len() < MOST_IDLE {
                idle.push(connection);
            }
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
