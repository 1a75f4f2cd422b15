//! `lsmkv serve`: a store behind the Redis protocol.
//!
//! - `event_loop`, `connection`, `arrivals`, `stream`: threads, sockets, turns;
//! - `execute`, `exec`, `together`, `catalog`, `commands`: what a command is and who runs it;
//! - `client`, `clients`: what is remembered of a connection, and what others may know of it;
//!   `budget`: how long its replies may be; `unused`: memory that goes back;
//! - `pop`, `waiters`: blocking pops; `mailbox`: what threads tell each other;
//! - `settings`, `counters`, `saves`, `shared`: the server's own state.

mod arrivals;
mod budget;
mod catalog;
mod client;
mod clients;
mod commands;
mod connection;
mod counters;
mod event_loop;
mod exec;
mod execute;
mod flusher;
mod log;
mod mailbox;
mod pop;
mod saves;
mod serve;
mod settings;
mod shared;
mod stream;
mod together;
mod unused;
mod waiters;

pub(crate) use serve::{ServeArgs, serve};
