//! DEBUG: the subcommands that test suites need.

use std::time::{Duration, Instant};

use crate::commands::Reply;

use super::Call;
use super::subcommand::Subcommand;
use crate::server::client::BlockedState;
use crate::server::error_reply::error_text;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::at_least("JMAP", 2, ok),
    Subcommand::new("OBJECT", 3, 3, object),
    Subcommand::new("SET-ACTIVE-EXPIRE", 3, 3, ok),
    Subcommand::new("SLEEP", 3, 3, sleep),
];

pub(super) fn debug(call: &mut Call<'_, '_>) {
    call.subcommand_or_unknown(SUBCOMMANDS);
}

/// A read never sees an expired key, so SET-ACTIVE-EXPIRE has nothing to change.
fn ok(call: &mut Call<'_, '_>) {
    call.out.ok();
}

/// Blocks this client; the server goes on.
fn sleep(call: &mut Call<'_, '_>) {
    let seconds = std::str::from_utf8(call.arg(2)).ok().and_then(|text| text.parse::<f64>().ok());
    let Some(time) = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) else {
        return call.out.error("ERR value is not a valid float");
    };
    if call.in_transaction {
        return call.out.ok();
    }
    let deadline = Instant::now().checked_add(time);
    let timeout_reply = Reply::OK;
    call.client.block(BlockedState {
        pop: None,
        script: None,
        deadline,
        timeout_reply,
        memory_bytes: 0,
    });
}

fn object(call: &mut Call<'_, '_>) {
    let db = call.client.session.db();
    match db.command(&[b"OBJECT", b"ENCODING", call.arg(2)]) {
        Ok(Reply::Bulk(encoding)) => {
            let encoding = String::from_utf8_lossy(&encoding);
            call.out.status(&format!(
                "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:0 lru:0 \
                 lru_seconds_idle:0"
            ));
        }
        Ok(Reply::Error(text)) => call.out.error(&text),
        Ok(_) => call.out.error("ERR no such key"),
        Err(error) => call.out.error(&error_text(&error)),
    }
}
