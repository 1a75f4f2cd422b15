//! A Redis server as a sink: each key replaces what was there, commands are pipelined.
//!
//! Commands of a copy that was killed may still be on their way to the server when the next one
//! begins, in a socket or in a tunnel, and would fall among those of the next one: parts of a list
//! twice. So a copy notes the server's number of its connection before it writes, and the next one
//! has the server end that connection first. To write each key under another name and then rename
//! it would not do: old values could still replace new ones, and other names would be left behind.

use std::time::Duration;

use super::info::life;
use super::words;
use crate::failure::Failure;
use crate::transfer::client::{Answer, Client};
use crate::transfer::{Chunk, Command, Interrupt, RedisUrl, Sink};

/// Commands whose answers have not been read, at most.
const IN_FLIGHT: usize = 1000;
/// How often the server is asked to end a connection, and the time between.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// See the module's documentation.
pub(crate) struct RedisSink {
    client: Client,
    /// Where keys go, if not to the database they come from.
    database: Option<u32>,
    selected: Option<u32>,
    in_flight: usize,
    life: String,
    connection: Option<i64>,
}

impl RedisSink {
    pub(crate) fn new(url: &RedisUrl, interrupt: &Interrupt) -> Result<Self, Failure> {
        let mut client = Client::connect(url, interrupt)?;
        let life = life(&mut client)?;
        // Servers before 5.0 do not tell, and some forbid to ask.
        client.send(&words(&[b"CLIENT", b"ID"]))?;
        let connection = match client.receive()? {
            // In another life the number would be that of someone else.
            Answer::Int(number) if !life.is_empty() => Some(number),
            _ => None,
        };
        let database = url.database;
        Ok(Self { client, database, selected: None, in_flight: 0, life, connection })
    }

    /// What the server calls its present life: in another one it may have lost what it was given.
    pub(crate) fn life(&self) -> &str {
        &self.life
    }

    /// The server's number of this connection, if it tells that.
    pub(crate) fn connection(&self) -> Option<i64> {
        self.connection
    }

    /// Has the server end another connection of this life: once it says that there is none, it
    /// takes no command from it any more. Whether it says so.
    pub(crate) fn end(&mut self, other: i64, interrupt: &Interrupt) -> Result<bool, Failure> {
        let kill = words(&[b"CLIENT", b"KILL", b"ID", other.to_string().as_bytes()]);
        // Of a server with several threads, one may still be at a command from it.
        for _ in 0..TRIES {
            self.client.send(&kill)?;
            match self.client.receive()? {
                Answer::Int(0) => return Ok(true),
                Answer::Int(_) if interrupt.raised() => return Err(Failure::new("stopped")),
                Answer::Int(_) => std::thread::sleep(PAUSE),
                // Some forbid it.
                _ => break,
            }
        }
        Ok(false)
    }

    fn send(&mut self, command: &Command) -> Result<(), Failure> {
        self.client.send(command)?;
        self.in_flight += 1;
        if self.in_flight >= IN_FLIGHT { self.settle() } else { Ok(()) }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        while self.in_flight > 0 {
            self.in_flight -= 1;
            if let Answer::Error(text) = self.client.receive()? {
                return Err(Failure::new(format!("{}: {text}", self.client.peer())));
            }
        }
        Ok(())
    }
}

impl Sink for RedisSink {
    fn put(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let database = self.database.unwrap_or(chunk.database);
        if self.selected != Some(database) {
            self.send(&words(&[b"SELECT", database.to_string().as_bytes()]))?;
            self.selected = Some(database);
        }
        for command in chunk.commands(true) {
            self.send(&command)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.settle()
    }
}
