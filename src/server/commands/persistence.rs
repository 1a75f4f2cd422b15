//! SAVE, BGSAVE, LASTSAVE, SHUTDOWN: flushes, and the end of the server.

use super::Call;
use crate::server::client::CloseState;
use crate::server::error_reply::error_text;

pub(super) fn save(call: &mut Call<'_, '_>) {
    match call.server.background_save.save(&call.server.db) {
        Ok(()) => call.out.ok(),
        Err(error) => call.out.error(&error_text(&error)),
    }
}

pub(super) fn bgsave(call: &mut Call<'_, '_>) {
    if call.server.background_save.start(&call.server.db) {
        let how = if call.in_transaction { "scheduled" } else { "started" };
        call.out.status(&format!("Background saving {how}"));
    } else {
        call.out.error("ERR Background save already in progress");
    }
}

pub(super) fn lastsave(call: &mut Call<'_, '_>) {
    call.out.integer(i64::try_from(call.server.background_save.last_s()).unwrap_or(i64::MAX));
}

pub(super) fn shutdown(call: &mut Call<'_, '_>) {
    let known = |word: &&[u8]| {
        [&b"NOSAVE"[..], b"SAVE", b"NOW", b"FORCE"].iter().any(|w| word.eq_ignore_ascii_case(w))
    };
    if call.rest(1).iter().any(|word| word.eq_ignore_ascii_case(b"ABORT")) {
        return call.out.error("ERR No shutdown in progress.");
    }
    if !call.rest(1).iter().all(known) {
        return call.out.error("ERR syntax error");
    }
    if call.server.holder.is_some() {
        let text = "ERR the store is shared: it ends when the processes that use it close it";
        return call.out.error(text);
    }
    call.client.close_state = CloseState::AfterReplies;
    call.server.stop();
}
