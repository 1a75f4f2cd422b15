//! TIME, WAIT, LOLWUT, and the commands of a cluster.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::commands::Reply;

use super::Call;
use crate::server::client::BlockedState;

pub(super) fn time(call: &mut Call<'_, '_>) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    call.out.array(2);
    call.out.bulk(since.as_secs().to_string().as_bytes());
    call.out.bulk(since.subsec_micros().to_string().as_bytes());
}

/// Blocks for the given time and replies 0: there are no replicas.
pub(super) fn wait(call: &mut Call<'_, '_>) {
    let Some(replicas) = call.number(1) else {
        return call.out.error("ERR value is not an integer or out of range");
    };
    let Some(limit) = call.number(2) else {
        return call.out.error("ERR timeout is not an integer or out of range");
    };
    let Ok(limit) = u64::try_from(limit) else {
        return call.out.error("ERR timeout is negative");
    };
    if replicas <= 0 || call.in_transaction {
        return call.out.integer(0);
    }
    let limit = (limit > 0).then(|| Duration::from_millis(limit));
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let timeout_reply = Reply::Int(0);
    call.client.block(BlockedState {
        pop: None,
        script: None,
        deadline,
        timeout_reply,
        memory_bytes: 0,
    });
}

pub(super) fn no_cluster(call: &mut Call<'_, '_>) {
    call.out.error("ERR This instance has cluster support disabled");
}

pub(super) fn lolwut(call: &mut Call<'_, '_>) {
    call.out.verbatim(concat!("lsmkv ", env!("CARGO_PKG_VERSION"), "\n"));
}
