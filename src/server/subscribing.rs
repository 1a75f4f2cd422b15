//! Messages of a client: SUBSCRIBE and its kin, what a subscribed client may call, CLIENT TRACKING,
//! and the messages that it receives.
//!
//! Messages wait in the session's inbox, whose limits the library enforces. The event loop moves
//! them to the output buffer as long as that is short, so a client that does not read is cut off by
//! the inbox.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::commands::Reply;

use super::client::{Client, CloseState};
use super::command_table::CommandEntry;
use super::mailbox::Message;
use super::session_call::write_failure;
use super::shared::Server;
use crate::resp::{Protocol, Writer};

/// Commands whose second word is part of their name.
const CONTAINERS: [(&str, &str); 5] = [
    (
        "client",
        "caching getname getredir id info kill list no-evict pause reply setinfo setname tracking \
         trackinginfo unblock unpause",
    ),
    ("command", "count docs getkeys getkeysandflags info list"),
    ("config", "get resetstat rewrite set"),
    ("object", "encoding freq help idletime refcount"),
    ("pubsub", "channels help numpat numsub shardchannels shardnumsub"),
];
/// What a RESP2 client may call while it is subscribed.
const ALLOWED: [&str; 9] = [
    "ping",
    "psubscribe",
    "punsubscribe",
    "quit",
    "reset",
    "ssubscribe",
    "subscribe",
    "sunsubscribe",
    "unsubscribe",
];

/// The error for a command that a subscribed client may not call, if this is one.
pub(crate) fn refusal(client: &Client, entry: &CommandEntry, argv: &[&[u8]]) -> Option<String> {
    let free = client.protocol == Protocol::Resp3 || !client.is_subscribed();
    if free || ALLOWED.contains(&entry.name.as_str()) {
        return None;
    }
    // Redis finds these errors first.
    if !entry.accepts_count(argv.len()) {
        return None;
    }
    let mut name = entry.name.clone();
    if let Some((_, subcommands)) = CONTAINERS.iter().find(|(own, _)| *own == name)
        && let Some(word) = argv.get(1)
    {
        let word = String::from_utf8_lossy(word).to_ascii_lowercase();
        subcommands.split(' ').find(|known| *known == word)?;
        name = format!("{name}|{word}");
    }
    Some(format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context"
    ))
}

/// Runs SUBSCRIBE or one of its kin outside of MULTI. Each name is confirmed by a message.
pub(crate) fn run_subscribe(
    server: &Server,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    listen(server, client);
    match client.session.command(argv) {
        Ok(Reply::Array(confirmations)) => {
            confirmations.iter().for_each(|confirmation| out.reply(confirmation));
        }
        Ok(reply) => out.reply(&reply),
        Err(error) => write_failure(server, &error, out),
    }
    update(client);
}

/// Lets the client's event loop know when messages arrive.
pub(crate) fn listen(server: &Server, client: &mut Client) {
    if client.listens {
        return;
    }
    client.listens = true;
    let (to, mailboxes) = (client.info.handle, Arc::clone(&server.mailboxes));
    client.session.on_message(move || mailboxes.post(to.event_loop, Message::Mail(to)));
}

/// Whether the session runs this command of the server: a part of CLIENT that a transaction must see
/// in its place.
pub(crate) fn is_of_session(entry: &CommandEntry, argv: &[&[u8]]) -> bool {
    const WORDS: [&str; 4] = ["caching", "getredir", "tracking", "trackinginfo"];
    let word = argv.get(1).copied().unwrap_or_default();
    entry.name == "client" && WORDS.iter().any(|own| word.eq_ignore_ascii_case(own.as_bytes()))
}

/// Publishes how the client tracks keys, and prepares whoever receives its messages.
pub(crate) fn update_tracking(server: &Server, client: &mut Client) {
    let tracking = client.session.tracking();
    *client.info.tracking.lock() = tracking;
    let Some(tracking) = tracking else { return };
    listen(server, client);
    if let Some(target) = server.clients.by_id(tracking.redirect) {
        server.post(target.handle.event_loop, Message::Listen(target.handle));
    }
}

/// Publishes the numbers of subscriptions to the client list.
pub(crate) fn update(client: &mut Client) {
    client.subscriptions = client.session.subscriptions();
    for (shown, count) in client.info.subscriptions.iter().zip(client.subscriptions) {
        shown.store(count, Relaxed);
    }
}

/// Writes PING's reply to a RESP2 client that is subscribed.
pub(crate) fn pong(argv: &[&[u8]], out: &mut Writer<'_>) {
    out.array(2);
    out.bulk(b"pong");
    out.bulk(argv.get(1).copied().unwrap_or_default());
}

/// Moves messages to the output as long as it has room. A client that was too slow is closed.
pub(crate) fn write_messages(server: &Server, client: &mut Client, out: &mut Vec<u8>, most: usize) {
    while out.len() < most {
        match client.session.take_message_bytes(client.protocol == Protocol::Resp3, out) {
            Ok(true) => {}
            Ok(false) => return,
            // Handled below.
            Err(_) => break,
        }
    }
    if let Some(error) = client.session.message_failure() {
        let (id, address) = (client.id(), &client.info.address);
        server.log.line(&format!("client {id} from {address} is closed: {error}"));
        client.close_state = CloseState::Now;
    }
}
