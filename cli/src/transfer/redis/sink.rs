//! A Redis server as a sink: each key replaces what was there, commands are pipelined.

use super::info::life;
use super::words;
use crate::failure::Failure;
use crate::transfer::client::{Answer, Client};
use crate::transfer::{Chunk, Command, Interrupt, RedisUrl, Sink};

/// Commands whose answers have not been read, at most.
const IN_FLIGHT: usize = 1000;

/// See the module's documentation.
pub(crate) struct RedisSink {
    client: Client,
    /// Where keys go, if not to the database they come from.
    database: Option<u32>,
    selected: Option<u32>,
    in_flight: usize,
    life: String,
}

impl RedisSink {
    pub(crate) fn new(url: &RedisUrl, interrupt: &Interrupt) -> Result<Self, Failure> {
        let mut client = Client::connect(url, interrupt)?;
        let life = life(&mut client)?;
        Ok(Self { client, database: url.database, selected: None, in_flight: 0, life })
    }

    /// What the server calls its present life: in another one it may have lost what it was given.
    pub(crate) fn life(&self) -> &str {
        &self.life
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
