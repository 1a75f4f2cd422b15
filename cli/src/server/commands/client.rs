//! CLIENT.

use std::sync::atomic::Ordering::Relaxed;

use super::Call;
use crate::server::client::{Client, Fate, ReplyMode};
use crate::server::clients::ClientInfo;
use crate::server::mailbox::Message;

pub(super) fn client(call: &mut Call<'_, '_>) {
    match (call.word(1).as_str(), call.argv.len()) {
        ("ID", 2) => call.out.integer(i64::try_from(call.client.id()).unwrap_or(i64::MAX)),
        ("GETNAME", 2) => getname(call),
        ("SETNAME", 3) => match set_name(call.client, call.arg(2)) {
            Ok(()) => call.out.ok(),
            Err(text) => call.out.error(text),
        },
        ("SETINFO", 4) => setinfo(call),
        ("INFO", 2) => {
            let line = line(call, &call.client.info.clone());
            call.out.verbatim(&line);
        }
        ("LIST", _) => list(call),
        ("KILL", 3..) => kill(call),
        ("UNBLOCK", 3 | 4) => unblock(call),
        ("NO-EVICT", 3) => match call.word(2).as_str() {
            word @ ("ON" | "OFF") => {
                call.client.info.no_evict.store(word == "ON", Relaxed);
                call.out.ok();
            }
            _ => call.out.error("ERR syntax error"),
        },
        ("REPLY", 3) => reply(call),
        (
            "ID" | "GETNAME" | "SETNAME" | "SETINFO" | "INFO" | "KILL" | "UNBLOCK" | "NO-EVICT"
            | "REPLY",
            _,
        ) => call.wrong_number(),
        _ => call.unknown_subcommand(),
    }
}

fn line(call: &Call<'_, '_>, info: &ClientInfo) -> String {
    let last = call.server.catalog.name(info.last_command.load(Relaxed));
    info.line(call.server.now_ms(), last) + "\n"
}

fn getname(call: &mut Call<'_, '_>) {
    let name = call.client.info.names.lock().name.clone();
    if name.is_empty() { call.out.nil() } else { call.out.bulk(name.as_bytes()) }
}

fn is_plain(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

/// Gives the connection a name; why not if not.
pub(super) fn set_name(client: &Client, name: &[u8]) -> Result<(), &'static str> {
    if !is_plain(name) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    client.info.names.lock().name = String::from_utf8_lossy(name).into_owned();
    Ok(())
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
            b"normal" => {}
            b"master" | b"slave" | b"replica" | b"pubsub" => clients.clear(),
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

/// Which clients CLIENT KILL means.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    /// Of a type or user that nobody here is.
    nobody: bool,
    skip_me: bool,
}

impl<'a> Filter<'a> {
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
                b"TYPE" => filter.nobody |= !value.eq_ignore_ascii_case(b"normal"),
                b"USER" => filter.nobody |= *value != b"default",
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

    fn means(&self, info: &ClientInfo) -> bool {
        !self.nobody
            && self.id.is_none_or(|id| id == info.id())
            && self.address.is_none_or(|address| address == info.address.as_bytes())
            && self.local_address.is_none_or(|address| address == info.local_address.as_bytes())
    }
}

fn kill(call: &mut Call<'_, '_>) {
    let by_address = call.argv.len() == 3;
    let filter = if by_address {
        Ok(Filter { address: Some(call.arg(2)), ..Filter::default() })
    } else {
        Filter::parse(call)
    };
    let filter = match filter {
        Ok(filter) => filter,
        Err(text) => return call.out.error(text),
    };
    let own = call.client.id();
    let mut killed = 0;
    for info in call.server.clients.list() {
        if !filter.means(&info) || (filter.skip_me && info.id() == own) {
            continue;
        }
        killed += 1;
        if info.id() == own {
            call.client.fate = Fate::Closes;
        } else {
            call.server.post(info.home.event_loop, Message::Kill(info.home));
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
            let to = info.home;
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
