//! AUTH, HELLO, RESET, QUIT: the state of a connection.

use super::Call;
use crate::resp::Protocol;
use crate::server::client::{CloseState, ReplyMode};

/// The version of Redis whose commands and replies the server follows.
pub(super) const REDIS_VERSION: &str = "7.0.15";

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

pub(super) fn auth(call: &mut Call<'_, '_>) {
    let (user, password) = match call.rest(1) {
        [password] => (&b"default"[..], *password),
        [user, password] => (*user, *password),
        _ => return call.out.error("ERR syntax error"),
    };
    if call.argv.len() == 2 && !call.server.settings.needs_password() {
        return call.out.error(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        );
    }
    match authenticate(call, user, password) {
        true => call.out.ok(),
        false => call.out.error(WRONG_PASSWORD),
    }
}

/// Authenticates the client; without a configured password, every password is right.
fn authenticate(call: &mut Call<'_, '_>, user: &[u8], password: &[u8]) -> bool {
    let settings = &call.server.settings;
    let right =
        user == b"default" && (!settings.needs_password() || settings.is_password(password));
    call.client.authenticated |= right;
    right
}

/// The parsed arguments of HELLO.
#[derive(Default)]
struct Hello<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn parse_hello<'a>(call: &Call<'a, '_>) -> Result<Hello<'a>, String> {
    let mut hello = Hello::default();
    let Some((version, mut rest)) = call.rest(1).split_first() else { return Ok(hello) };
    let version = std::str::from_utf8(version).ok().and_then(|text| text.parse::<i64>().ok());
    hello.protocol = match version {
        Some(2) => Some(Protocol::Resp2),
        Some(3) => Some(Protocol::Resp3),
        Some(_) => return Err("NOPROTO unsupported protocol version".to_owned()),
        None => {
            return Err("ERR Protocol version is not an integer or out of range".to_owned());
        }
    };
    while let Some((word, after)) = rest.split_first() {
        rest = match (word.to_ascii_uppercase().as_slice(), after) {
            (b"AUTH", [user, password, after @ ..]) => {
                hello.login = Some((user, password));
                after
            }
            (b"SETNAME", [name, after @ ..]) => {
                hello.name = Some(name);
                after
            }
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(format!("ERR Syntax error in HELLO option '{word}'"));
            }
        };
    }
    Ok(hello)
}

pub(super) fn hello(call: &mut Call<'_, '_>) {
    let hello = match parse_hello(call) {
        Ok(hello) => hello,
        Err(text) => return call.out.error(&text),
    };
    if let Some((user, password)) = hello.login
        && !authenticate(call, user, password)
    {
        return call.out.error(WRONG_PASSWORD);
    }
    if !call.client.authenticated {
        return call.out.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        );
    }
    if let Some(name) = hello.name
        && let Err(text) = super::client::set_name(call.client, name)
    {
        return call.out.error(text);
    }
    if let Some(protocol) = hello.protocol {
        call.client.set_protocol(protocol);
        call.out.set_protocol(protocol);
    }
    greet(call);
}

fn greet(call: &mut Call<'_, '_>) {
    let (number, id) = (call.client.protocol.number(), call.client.id());
    let out = &mut *call.out;
    out.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    }
    for (name, value) in [("proto", number), ("id", i64::try_from(id).unwrap_or(i64::MAX))] {
        out.bulk(name.as_bytes());
        out.integer(value);
    }
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        out.bulk(name.as_bytes());
        out.bulk(value.as_bytes());
    }
    out.bulk(b"modules");
    out.array(0);
}

pub(super) fn reset(call: &mut Call<'_, '_>) {
    let client = &mut *call.client;
    client.held.end(&mut client.session);
    // Ends a transaction, unwatches all keys, selects database 0.
    let _ = client.session.command(&[b"RESET"]);
    set_monitors(call, false);
    let client = &mut *call.client;
    client.reply_mode = ReplyMode::On;
    client.authenticated = !call.server.settings.needs_password();
    client.info.no_evict.store(false, std::sync::atomic::Ordering::Relaxed);
    client.info.names.lock().name.clear();
    client.set_protocol(Protocol::Resp2);
    client.sync_with_session();
    crate::server::subscribing::update(client);
    crate::server::subscribing::update_tracking(call.server, client);
    call.out.set_protocol(Protocol::Resp2);
    call.out.status("RESET");
}

/// Ends or begins to show the client the commands of others.
fn set_monitors(call: &mut Call<'_, '_>, monitors: bool) {
    if std::mem::replace(&mut call.client.monitors, monitors) == monitors {
        return;
    }
    let handle = call.client.info.handle;
    call.client.info.monitors.store(monitors, std::sync::atomic::Ordering::Relaxed);
    match monitors {
        true => call.server.monitors.add(handle),
        false => call.server.monitors.remove(handle),
    }
}

pub(super) fn monitor(call: &mut Call<'_, '_>) {
    if call.in_transaction {
        return call.out.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
    }
    // As Redis does, a second call has no reply.
    if !call.client.monitors {
        set_monitors(call, true);
        call.out.ok();
    }
}

pub(super) fn quit(call: &mut Call<'_, '_>) {
    call.client.close_state = CloseState::AfterReplies;
    call.out.ok();
}
