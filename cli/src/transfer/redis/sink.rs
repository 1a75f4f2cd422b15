//! A Redis server as a sink. Each key replaces its old value, and commands are pipelined.
//!
//! When a copy is killed, some of its commands may still be in a socket or a tunnel while the next
//! copy runs. They would interleave with the new commands and duplicate list elements. So a copy
//! saves the id of its connection before it writes, and the next copy first has the server close
//! that connection. Writing under a temporary name and renaming would not help: old values could
//! still replace new ones, and temporary keys would be left behind.

use std::time::Duration;

use lsmkv::{Address, Options, Reply};

use super::info::run_id;
use super::words;
use crate::failure::Failure;
use crate::transfer::client::RedisClient;
use crate::transfer::{Chunk, Command, Interrupt, Sink};

/// The maximum number of commands without a reply.
const MAX_IN_FLIGHT: usize = 1000;
/// How often to ask the server to close a connection, and the pause between.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Writes keys to a Redis server.
pub(crate) struct RedisSink {
    client: RedisClient,
    /// The database for all keys; `None`: each key keeps its own.
    database: Option<u32>,
    selected: Option<u32>,
    in_flight: usize,
    run_id: String,
    connection: Option<i64>,
}

impl RedisSink {
    pub(crate) fn new(
        address: &Address,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let mut client = RedisClient::connect(address, options, interrupt)?;
        let run_id = run_id(&mut client)?;
        // Servers before 5.0 do not know CLIENT ID, and some forbid it.
        client.send(words(&[b"CLIENT", b"ID"]))?;
        let connection = match client.receive()? {
            // In another run the id would belong to another client.
            Reply::Int(number) if !run_id.is_empty() => Some(number),
            _ => None,
        };
        let database = address.database;
        Ok(Self { client, database, selected: None, in_flight: 0, run_id, connection })
    }

    /// The server's run id. In another run the server may have lost the keys.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The id of this connection at the server, if known.
    pub(crate) fn connection(&self) -> Option<i64> {
        self.connection
    }

    /// Closes another connection of the same run. Returns whether the server confirms that it is
    /// gone, and so runs no more commands from it.
    pub(crate) fn close_other(
        &mut self,
        other: i64,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        let kill = words(&[b"CLIENT", b"KILL", b"ID", other.to_string().as_bytes()]);
        // A server with several threads may still be running a command from it.
        for _ in 0..TRIES {
            self.client.send(kill.clone())?;
            match self.client.receive()? {
                Reply::Int(0) => return Ok(true),
                Reply::Int(_) if interrupt.raised() => return Err(Failure::new("stopped")),
                Reply::Int(_) => std::thread::sleep(PAUSE),
                // Some servers forbid CLIENT KILL.
                _ => break,
            }
        }
        Ok(false)
    }

    fn send(&mut self, command: Command) -> Result<(), Failure> {
        self.client.send(command)?;
        self.in_flight += 1;
        if self.in_flight >= MAX_IN_FLIGHT { self.receive_pending() } else { Ok(()) }
    }

    fn receive_pending(&mut self) -> Result<(), Failure> {
        while self.in_flight > 0 {
            self.in_flight -= 1;
            if let Reply::Error(text) = self.client.receive()? {
                return Err(Failure::new(format!("{}: {text}", self.client.peer())));
            }
        }
        Ok(())
    }
}

impl Sink for RedisSink {
    fn put(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let database = self.database.unwrap_or(chunk.database);
        if self.client.is_cluster() {
            if database != 0 {
                let text = format!(
                    "{}: a cluster has database 0 alone, and a key is in {database}; \
                     --db chooses a database, redis-cluster://host/0 puts all into 0",
                    self.client.peer()
                );
                return Err(Failure::new(text));
            }
        } else if self.selected != Some(database) {
            self.send(words(&[b"SELECT", database.to_string().as_bytes()]))?;
            self.selected = Some(database);
        }
        for command in chunk.commands(true) {
            self.send(command)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.receive_pending()
    }
}
