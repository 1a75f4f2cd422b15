//! A store behind the Redis protocol, on threads of its own in the process that opened it.
//!
//! The server installs no signal handler, writes to no stream, and chooses no allocator: that is the
//! program's. Its threads block all signals, and its sockets raise no SIGPIPE.
//!
//! - `running`: starts and stops the server; `flusher`, `log`: its helper thread and its messages;
//! - `address`: where it listens; `sharing`: the socket of a store that processes share;
//! - `event_loop`, `connection`, `input_buffer`, `stream`: threads, connections and sockets;
//! - `dispatch`, `command_table`, `commands`, `command_batch`, `session_call`: commands;
//! - `transaction_queue`, `transaction`: MULTI and EXEC;
//! - `client`, `client_list`: the state of a client, and the part that other threads may read;
//! - `blocking`, `subscribing`: blocking pops, subscriptions; `mailbox`: messages between threads;
//! - `scripts`: scripts that take long;
//! - `monitor`: clients that see the commands of others;
//! - `output_classes`, `output_limit`: limits on reply buffers;
//! - `settings`, `counters`, `background_save`, `shared`: the server's state.

mod address;
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
mod held;
mod input_buffer;
mod log;
mod long_reply;
mod mailbox;
mod monitor;
mod output_classes;
mod output_limit;
mod running;
mod scripts;
mod session_call;
mod settings;
mod shared;
mod sharing;
mod stream;
mod subscribing;
mod transaction;
mod transaction_queue;
mod walk_words;

pub use commands::process_bytes;
pub(crate) use commands::upkeep_reply;
pub use log::Log;
pub use running::{RunningServer, ServerConfig, tls_parameters};
pub(crate) use sharing::socket_in;
pub use stream::Listener;
pub(crate) use walk_words::{entries_of, words_of};

/// Makes the calling thread, one of the program's own that works in the background, give way to others.
pub fn give_way() {
    crate::sync::background::give_way();
}
