//! What INFO says of a Redis server that keys come from.

use crate::failure::Failure;
use crate::transfer::client::Client;

/// What a server calls itself from its start to its end.
pub(super) fn life(client: &mut Client) -> Result<String, Failure> {
    let info = client.ask_words(&["INFO", "server"])?.text().unwrap_or_default();
    let info = String::from_utf8_lossy(&info);
    let named = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    Ok(named.unwrap_or_default().trim().to_owned())
}

/// The databases that have keys, and how many keys these have.
pub(super) fn populated(
    client: &mut Client,
    wanted: Option<u32>,
) -> Result<(Vec<u32>, u64), Failure> {
    let info = client.ask_words(&["INFO", "keyspace"])?.text().unwrap_or_default();
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
