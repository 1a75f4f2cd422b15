//! TIME, WAIT, LOLWUT.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Call;

pub(super) fn time(call: &mut Call<'_, '_>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    call.out.array(2);
    call.out.bulk(since.as_secs().to_string().as_bytes());
    call.out.bulk(since.subsec_micros().to_string().as_bytes());
}

pub(super) fn wait(call: &mut Call<'_, '_>) {
    match (call.number(1), call.number(2)) {
        (Some(_), Some(limit)) if limit >= 0 => call.out.integer(0),
        (Some(_), Some(_)) => call.out.error("ERR timeout is negative"),
        (Some(_), None) => call.out.error("ERR timeout is not an integer or out of range"),
        (None, _) => call.out.error("ERR value is not an integer or out of range"),
    }
}

pub(super) fn lolwut(call: &mut Call<'_, '_>) {
    call.out.verbatim(concat!("lsmkv ", env!("CARGO_PKG_VERSION"), "\n"));
}
