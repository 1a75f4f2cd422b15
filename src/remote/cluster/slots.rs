//! Slots: which part of a cluster a key belongs to, and which node serves each.

use std::sync::Arc;

use crate::commands::Reply;
use crate::remote::address::Endpoint;

/// The number of slots of every cluster.
pub(super) const SLOTS: u16 = 16_384;

/// The slot of a key. If it has a hash tag, which is what stands between the first `{` and the next
/// `}`, only that counts.
pub(in crate::remote) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let after = key.get(open + 1..)?;
        let close = after.iter().position(|byte| *byte == b'}')?;
        after.get(..close).filter(|tag| !tag.is_empty())
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16 with the polynomial 0x1021, which clusters use.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// Which node serves each slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotMap {
    /// Ranges of slots with their primaries, by their first slot.
    ranges: Vec<(u16, u16, Arc<Endpoint>)>,
}

impl SlotMap {
    /// Reads the reply of CLUSTER SLOTS. A node that states no host has that of `asked`. `None` if
    /// it is no such reply, or names no node.
    pub(super) fn parse(reply: &Reply, asked: &Endpoint) -> Option<Self> {
        let Reply::Array(items) = reply else { return None };
        let mut ranges = Vec::new();
        for item in items {
            let Reply::Array(parts) = item else { return None };
            let [Reply::Int(first), Reply::Int(last), Reply::Array(node), ..] = parts.as_slice()
            else {
                return None;
            };
            let (Some(host), Some(Reply::Int(port))) = (node.first(), node.get(1)) else {
                return None;
            };
            let host = match host {
                Reply::Bulk(host) if !host.is_empty() => String::from_utf8(host.to_vec()).ok()?,
                _ => host_of(asked),
            };
            let endpoint = Endpoint::Tcp(host, u16::try_from(*port).ok()?);
            let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
            if first > last || last >= SLOTS {
                return None;
            }
            ranges.push((first, last, Arc::new(endpoint)));
        }
        ranges.sort_unstable_by_key(|(first, ..)| *first);
        (!ranges.is_empty()).then_some(Self { ranges })
    }

    /// The node of a slot, if one serves it.
    pub(super) fn node(&self, slot: u16) -> Option<&Endpoint> {
        let after = self.ranges.partition_point(|(first, ..)| *first <= slot);
        let (_, last, node) = self.ranges.get(after.checked_sub(1)?)?;
        (slot <= *last).then_some(node)
    }

    /// Every node that serves a slot, each once, in the order of their first slots.
    pub(super) fn nodes(&self) -> Vec<&Endpoint> {
        let mut nodes: Vec<&Endpoint> = Vec::new();
        for (.., node) in &self.ranges {
            if !nodes.contains(&node.as_ref()) {
                nodes.push(node);
            }
        }
        nodes
    }
}

/// The host of an endpoint, for nodes that are named by a port alone.
pub(super) fn host_of(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp(host, _) => host.clone(),
        Endpoint::Unix(_) => "127.0.0.1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        // The check value of this CRC, and keys whose slots `CLUSTER KEYSLOT` of Redis 7.0 gave.
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_ne!(slot_of(b"foo{}{bar}"), slot_of(b"bar"));
        assert_ne!(slot_of(b"foo{bar"), slot_of(b"bar"));
    }

    #[test]
    fn a_map_knows_the_node_of_every_served_slot() {
        let node = |host: &str, port| {
            Reply::Array(vec![Reply::Bulk(host.to_owned().into()), Reply::Int(port)])
        };
        let range =
            |first, last, node| Reply::Array(vec![Reply::Int(first), Reply::Int(last), node]);
        let reply = Reply::Array(vec![
            range(5461, 16_000, node("", 7002)),
            range(0, 5460, node("h", 7001)),
        ]);
        let asked = Endpoint::Tcp("asked".into(), 1);
        let map = SlotMap::parse(&reply, &asked).unwrap();
        let at = |port| Some(Endpoint::Tcp(if port == 7001 { "h" } else { "asked" }.into(), port));
        assert_eq!(map.node(0).cloned(), at(7001));
        assert_eq!(map.node(5460).cloned(), at(7001));
        assert_eq!(map.node(5461).cloned(), at(7002));
        assert_eq!(map.node(16_001), None);
        assert_eq!(map.nodes().len(), 2);
        for bad in [
            Reply::Nil,
            Reply::Array(vec![]),
            Reply::Array(vec![range(9, 3, node("h", 1))]),
            Reply::Array(vec![range(0, 16_384, node("h", 1))]),
            Reply::Array(vec![range(0, 3, node("h", 70_000))]),
            Reply::Array(vec![Reply::Int(1)]),
        ] {
            assert_eq!(SlotMap::parse(&bad, &asked), None, "{bad:?}");
        }
    }
}
