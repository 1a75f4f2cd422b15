//! DEBUG, as far as test suites need it.

use std::time::{Duration, Instant};

use lsmkv::Reply;

use super::Call;
use crate::server::client::Blocked;

pub(super) fn debug(call: &mut Call<'_, '_>) {
    match (call.word(1).as_str(), call.argv.len()) {
        ("SLEEP", 3) => sleep(call),
        // Here a read never sees what has expired, whether it was deleted yet or not.
        ("JMAP", _) | ("SET-ACTIVE-EXPIRE", 3) => call.out.ok(),
        ("OBJECT", 3) => object(call),
        _ => call.unknown_subcommand(),
    }
}

/// Only this client sleeps.
fn sleep(call: &mut Call<'_, '_>) {
    let seconds = std::str::from_utf8(call.arg(2)).ok().and_then(|text| text.parse::<f64>().ok());
    let Some(time) = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) else {
        return call.out.error("ERR value is not a valid float");
    };
    if call.in_transaction {
        return call.out.ok();
    }
    let deadline = Instant::now().checked_add(time);
    call.client.block(Blocked { ticket: None, deadline, finally: Reply::OK, bytes: 0 });
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
        Err(error) => call.out.error(&crate::server::execute::failure_text(&error)),
    }
}
