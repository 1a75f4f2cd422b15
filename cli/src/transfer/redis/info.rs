//! Facts about a Redis server from INFO.

use lsmkv::Reply;

use crate::failure::Failure;
use crate::transfer::client::{RedisClient, text_of};

/// The server's run id, which changes at every start; empty if the server has none, and for a
/// cluster.
pub(super) fn run_id(client: &mut RedisClient) -> Result<String, Failure> {
    if client.is_cluster() {
        // Each node has its own.
        return Ok(String::new());
    }
    let info = text_of(client.call_words(&["INFO", "server"])?).unwrap_or_default();
    let info = String::from_utf8_lossy(&info);
    let named = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    Ok(named.unwrap_or_default().trim().to_owned())
}

/// The databases with keys, and their total number of keys.
pub(super) fn populated(
    client: &mut RedisClient,
    wanted: Option<u32>,
) -> Result<(Vec<u32>, u64), Failure> {
    if client.is_cluster() {
        return match client.call_words(&["DBSIZE"])? {
            Reply::Int(keys) => Ok((vec![0], u64::try_from(keys).unwrap_or(0))),
            _ => Ok((vec![0], 0)),
        };
    }
    let info = text_of(client.call_words(&["INFO", "keyspace"])?).unwrap_or_default();
    let info = String::from_utf8_lossy(&info);
    let (mut databases, mut keys) = (Vec::new(), 0);
    for line in info.lines() {
        let Some((name, rest)) = line.split_once(":keys=") else { continue };
        let Some(number) = name.strip_prefix("db").and_then(|text| text.parse().ok()) else {
            continue;
        };
        if wanted.is_none_or(|wanted| wanted == number) {
            databases.push(number);
            let count = rest.split(',').next().and_then(|text| text.parse::<u64>().ok());
            keys += count.unwrap_or(0);
        }
    }
    Ok((databases, keys))
}
