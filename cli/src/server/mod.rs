//! `lsmkv serve`: a store behind the Redis protocol.
//!
//! - `serve`: starts and stops the server; `flusher`, `log`: its helper thread and its messages;
//! - `event_loop`, `connection`, `input_buffer`, `stream`: threads, connections and sockets;
//! - `dispatch`, `command_table`, `commands`, `command_batch`, `session_call`: commands;
//! - `transaction_queue`, `transaction`: MULTI and EXEC;
//! - `client`, `client_list`: the state of a client, and the part that other threads may read;
//! - `blocking`, `subscribing`: blocking pops, subscriptions; `mailbox`: messages between threads;
//! - `scripts`: scripts that take long;
//! - `monitor`: clients that see the commands of others;
//! - `output_classes`, `output_limit`, `memory_trim`: limits on reply buffers, and memory returned to the system;
//! - `settings`, `counters`, `background_save`, `shared`: the server's state.

mod background_save;
mod blocking;
mod client;
mod client_list;
mod clock;
mod command_batch;
mod command_table;
mod commands;
mod connection;
mod counters;
mod dispatch;
mod error_reply;
mod event_loop;
mod flusher;
mod input_buffer;
mod log;
mod mailbox;
mod memory_trim;
mod monitor;
mod output_classes;
mod output_limit;
mod scripts;
mod serve;
mod session_call;
mod settings;
mod shared;
mod stream;
mod subscribing;
mod transaction;
mod transaction_queue;

pub(crate) use serve::{ServeArgs, serve};
