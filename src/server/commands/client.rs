//! CLIENT: lists, names, closes and unblocks clients.

use std::sync::atomic::Ordering::Relaxed;

use super::Call;
use super::subcommand::Subcommand;
use crate::server::client::{Client, CloseState, ReplyMode};
use crate::server::client_list::ClientInfo;
use crate::server::mailbox::Message;
use crate::server::session_call::run_in_session;
use crate::server::subscribing::update_tracking;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new("CACHING", 3, 3, in_session),
    Subcommand::new("GETNAME", 2, 2, getname),
    Subcommand::new("GETREDIR", 2, 2, in_session),
    Subcommand::new("ID", 2, 2, id),
    Subcommand::new("INFO", 2, 2, info),
    Subcommand::at_least("KILL", 3, kill),
    Subcommand::at_least("LIST", 2, list),
    Subcommand::new("NO-EVICT", 3, 3, no_evict),
    Subcommand::new("REPLY", 3, 3, reply),
    Subcommand::new("SETINFO", 4, 4, setinfo),
    Subcommand::new("SETNAME", 3, 3, setname),
    Subcommand::at_least("TRACKING", 3, in_session),
    Subcommand::new("TRACKINGINFO", 2, 2, in_session),
    Subcommand::new("UNBLOCK", 3, 4, unblock),
];

pub(super) fn client(call: &mut Call<'_, '_>) {
    call.subcommand(SUBCOMMANDS);
}

/// Runs a subcommand that the session knows.
fn in_session(call: &mut Call<'_, '_>) {
    run_in_session(call.server, call.client, call.argv, call.out);
    update_tracking(call.server, call.client);
}

fn id(call: &mut Call<'_, '_>) {
    call.out.integer(i64::try_from(call.client.id()).unwrap_or(i64::MAX));
}

fn info(call: &mut Call<'_, '_>) {
    let line = line(call, &call.client.info.clone());
    call.out.verbatim(&line);
}

fn no_evict(call: &mut Call<'_, '_>) {
    match call.word(2).as_str() {
        word @ ("ON" | "OFF") => {
            call.client.info.no_evict.store(word == "ON", Relaxed);
            call.out.ok();
        }
        _ => call.out.error("ERR syntax error"),
    }
}

fn line(call: &Call<'_, '_>, info: &ClientInfo) -> String {
    let last = call.server.commands.name(info.last_command.load(Relaxed));
    info.line(call.server.now_ms(), last) + "\n"
}

fn getname(call: &mut Call<'_, '_>) {
    let name = call.client.info.names.lock().name.clone();
    if name.is_empty() { call.out.nil() } else { call.out.bulk(name.as_bytes()) }
}

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// Names the connection; returns the text of the error if the name is not valid.
pub(super) fn set_name(client: &Client, name: &[u8]) -> Result<(), &'static str> {
    if !is_plain(name) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    client.info.names.lock().name = String::from_utf8_lossy(name).into_owned();
    Ok(())
}

fn setname(call: &mut Call<'_, '_>) {
    match set_name(call.client, call.arg(2)) {
        Ok(()) => call.out.ok(),
        Err(text) => call.out.error(text),
    }
}

fn setinfo(call: &mut Call<'_, '_>) {
    let value = call.arg(3);
    if !is_plain(value) {
        let name = call.word(2).to_ascii_lowercase();
        let text = format!("ERR {name} cannot contain spaces, newlines or special characters.");
        return call.out.error(&text);
    }
    let value = String::from_utf8_lossy(value).into_owned();
    let mut names = call.client.info.names.lock();
    match call.word(2).as_str() {
        "LIB-NAME" => names.library = value,
        "LIB-VER" => names.library_version = value,
        _ => {
            let option = String::from_utf8_lossy(call.arg(2)).into_owned();
            return call.out.error(&format!("ERR Unrecognized option '{option}'"));
        }
    }
    call.out.ok();
}

fn list(call: &mut Call<'_, '_>) {
    let mut clients = call.server.clients.list();
    match (call.word(2).as_str(), call.rest(3)) {
        ("", []) => {}
        ("TYPE", [kind]) => match kind.to_ascii_lowercase().as_slice() {
            b"normal" => clients.retain(|info| !info.is_subscribed()),
            b"pubsub" => clients.retain(|info| info.is_subscribed()),
            b"master" | b"slave" | b"replica" => clients.clear(),
            _ => {
                let kind = String::from_utf8_lossy(kind);
                return call.out.error(&format!("ERR Unknown client type '{kind}'"));
            }
        },
        ("ID", ids) if !ids.is_empty() => {
            let id = |text: &&[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
            let Some(ids) = ids.iter().map(id).collect::<Option<Vec<_>>>() else {
                return call.out.error("ERR Invalid client ID");
            };
            clients.retain(|info| ids.contains(&info.id()));
        }
        _ => return call.out.error("ERR syntax error"),
    }
    let lines: String = clients.iter().map(|info| line(call, info)).collect();
    call.out.verbatim(&lines);
}

/// The filter of CLIENT KILL.
#[derive(Default)]
struct KillFilter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    /// Whether the filter names a type or user that no client has.
    matches_none: bool,
    /// Whether the clients are subscribed.
    subscribed: Option<bool>,
    skip_me: bool,
}

impl<'a> KillFilter<'a> {
    fn parse(call: &Call<'a, '_>) -> Result<Self, &'static str> {
        let mut filter = Self { skip_me: true, ..Self::default() };
        for pair in call.rest(2).chunks(2) {
            let [name, value] = pair else { return Err("ERR syntax error") };
            match name.to_ascii_uppercase().as_slice() {
                b"ID" => {
                    let id = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    filter.id = Some(id.ok_or("ERR client-id should be greater than 0")?);
                }
                b"ADDR" => filter.address = Some(value),
                b"LADDR" => filter.local_address = Some(value),
                b"TYPE" => match value.to_ascii_lowercase().as_slice() {
                    b"normal" => filter.subscribed = Some(false),
                    b"pubsub" => filter.subscribed = Some(true),
                    _ => filter.matches_none = true,
                },
                b"USER" => filter.matches_none |= *value != b"default",
                b"SKIPME" => match value.to_ascii_lowercase().as_slice() {
                    b"yes" => filter.skip_me = true,
                    b"no" => filter.skip_me = false,
                    _ => return Err("ERR syntax error"),
                },
                _ => return Err("ERR syntax error"),
            }
        }
        Ok(filter)
    }

    fn matches(&self, info: &ClientInfo) -> bool {
        !self.matches_none
            && self.id.is_none_or(|id| id == info.id())
            && self.subscribed.is_none_or(|subscribed| subscribed == info.is_subscribed())
            && self.address.is_none_or(|address| address == info.address.as_bytes())
            && self.local_address.is_none_or(|address| address == info.local_address.as_bytes())
    }
}

fn kill(call: &mut Call<'_, '_>) {
    let by_address = call.argv.len() == 3;
    let filter = if by_address {
        Ok(KillFilter { address: Some(call.arg(2)), ..KillFilter::default() })
    } else {
        KillFilter::parse(call)
    };
    let filter = match filter {
        Ok(filter) => filter,
        Err(text) => return call.out.error(text),
    };
    let own = call.client.id();
    let mut killed = 0;
    for info in call.server.clients.list() {
        if !filter.matches(&info) || (filter.skip_me && info.id() == own) {
            continue;
        }
        killed += 1;
        if info.id() == own {
            call.client.close_state = CloseState::AfterReplies;
        } else {
            call.server.post(info.handle.event_loop, Message::Kill(info.handle));
        }
    }
    match (by_address, killed) {
        (true, 0) => call.out.error("ERR No such client"),
        (true, _) => call.out.ok(),
        (false, killed) => call.out.integer(killed),
    }
}

fn unblock(call: &mut Call<'_, '_>) {
    let with_error = match call.word(3).as_str() {
        "" | "TIMEOUT" => false,
        "ERROR" => true,
        _ => {
            let text = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";
            return call.out.error(text);
        }
    };
    let Some(id) = call.number(2) else {
        return call.out.error("ERR value is not an integer or out of range");
    };
    let found = u64::try_from(id).ok().and_then(|id| call.server.clients.by_id(id));
    match found.filter(|info| info.blocked.load(Relaxed)) {
        Some(info) => {
            let to = info.handle;
            call.server.post(to.event_loop, Message::Unblock { to, with_error });
            call.out.integer(1);
        }
        None => call.out.integer(0),
    }
}

fn reply(call: &mut Call<'_, '_>) {
    match call.word(2).as_str() {
        "ON" => {
            call.client.reply_mode = ReplyMode::On;
            call.out.ok();
        }
        "OFF" => call.client.reply_mode = ReplyMode::Off,
        "SKIP" if call.client.reply_mode == ReplyMode::Off => {}
        "SKIP" => call.client.reply_mode = ReplyMode::SkipNext,
        _ => call.out.error("ERR syntax error"),
    }
}
