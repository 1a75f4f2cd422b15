//! SCAN over a cluster: one node after the other.
//!
//! A cursor is the cursor at the node, times [`NODES`], plus the number of the node. A scan during
//! which slots move may miss keys of those slots, as with every client of a cluster.

use super::Cluster;
use crate::commands::{Head, Reply, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::remote::call::Call;
use crate::remote::frame::Frame;

/// More nodes than any cluster has.
const NODES: u64 = 1 << 10;

/// Runs SCAN with a cursor of this kind.
pub(super) fn page(cluster: &Cluster, call: &Call<'_>, sink: &mut dyn ReplySink) -> Result<Frame> {
    let pools = cluster.every_pool();
    let nodes = pools.len() as u64;
    let cursor = call.argv.get(1).and_then(|word| std::str::from_utf8(word).ok());
    let cursor = cursor.and_then(|text| text.parse::<u64>().ok());
    // Of a node that is gone the others have the keys: the scan begins again.
    let place = cursor.map(|cursor| (cursor / NODES, cursor % NODES));
    let (at_node, number) = place.filter(|(_, number)| *number < nodes).unwrap_or_default();
    let at_node = at_node.to_string();
    let mut argv = call.argv.to_vec();
    // What is no number is for a node to refuse.
    if let Some(word) = argv.get_mut(1).filter(|_| cursor.is_some()) {
        *word = at_node.as_bytes();
    }
    let pool = usize::try_from(number).ok().and_then(|number| pools.get(number));
    let pool = pool.ok_or_else(|| Error::new(ErrorKind::Io, "no node of the cluster answers"))?;
    let reply = match cluster.query(pool, &Call { argv: &argv, entry: call.entry })? {
        Ok(reply) => reply,
        Err(text) => return Ok(Frame::Error(text)),
    };
    let Reply::Array(parts) = reply else { return Err(odd()) };
    let [Reply::Bulk(next), found] = parts.as_slice() else { return Err(odd()) };
    let next: u64 =
        std::str::from_utf8(next).ok().and_then(|text| text.parse().ok()).ok_or_else(odd)?;
    let next = match next {
        0 if number + 1 < nodes => number + 1,
        0 => 0,
        next => next.checked_mul(NODES).map(|next| next + number).ok_or_else(odd)?,
    };
    sink.head(Head::Array, 2);
    sink.bulk(next.to_string().as_bytes());
    found.write_to(sink);
    Ok(Frame::Reply)
}

fn odd() -> Error {
    Error::new(ErrorKind::Io, "a node of the cluster gave a page of SCAN that cannot be read")
}
