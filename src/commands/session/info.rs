//! INFO and TIME: what a program that expects a server asks for, answered for a store in this
//! process. Figures that only a server has, such as bytes on the network, are left out.

use std::fmt::{Display, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::connection::Connection;
use crate::commands::args::Args;
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::types::KeyFigures;

/// The version of Redis whose commands and replies the library has.
const REDIS_VERSION: &str = "7.0.15";

/// The lines of a section.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }
}

type Section = (&'static str, fn(&Connection, &mut Lines) -> Result<()>);

/// The sections in the order of the reply.
const SECTIONS: [Section; 8] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

impl Connection {
    /// Runs INFO.
    pub(super) fn info(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let asked: Vec<String> =
            args.all().iter().map(|it| String::from_utf8_lossy(it).to_ascii_lowercase()).collect();
        let all = asked.is_empty()
            || asked.iter().any(|it| matches!(it.as_str(), "all" | "default" | "everything"));
        let mut text = String::new();
        for (name, write) in SECTIONS {
            if all || asked.iter().any(|it| it.eq_ignore_ascii_case(name)) {
                let mut lines = Lines::default();
                write(self, &mut lines)?;
                let gap = if text.is_empty() { "" } else { "\r\n" };
                // Writing to a string does not fail.
                let _ = write!(text, "{gap}# {name}\r\n{}", lines.0);
            }
        }
        Ok(Reply::Bulk(Bytes::from(text)))
    }
}

/// TIME: seconds since 1970, and microseconds.
pub(super) fn time() -> Reply {
    let now = since_1970();
    let bulk = |number: String| Reply::Bulk(Bytes::from(number));
    Reply::Array(vec![bulk(now.as_secs().to_string()), bulk(now.subsec_micros().to_string())])
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn server(connection: &Connection, lines: &mut Lines) -> Result<()> {
    let uptime = connection.home.store().hub().clients().uptime().as_secs();
    lines.add("redis_version", REDIS_VERSION);
    lines.add("redis_mode", "standalone");
    lines.add("lsmkv_version", env!("CARGO_PKG_VERSION"));
    lines.add("os", std::env::consts::OS);
    lines.add("arch_bits", usize::BITS);
    lines.add("process_id", std::process::id());
    lines.add("tcp_port", 0);
    lines.add("server_time_usec", since_1970().as_micros());
    lines.add("uptime_in_seconds", uptime);
    lines.add("uptime_in_days", uptime / 86_400);
    lines.add("hz", 10);
    Ok(())
}

fn clients(connection: &Connection, lines: &mut Lines) -> Result<()> {
    let hub = connection.home.store().hub();
    lines.add("connected_clients", hub.clients().list().len());
    lines.add("cluster_connections", 0);
    lines.add("maxclients", 10_000);
    lines.add("blocked_clients", hub.waiting_calls());
    Ok(())
}

fn memory(connection: &Connection, lines: &mut Lines) -> Result<()> {
    let engine = connection.home.store().engine().stats();
    let held = engine.memtable_bytes + engine.cache_bytes + engine.resident_bytes;
    lines.add("used_memory", held);
    lines.add("used_memory_human", human(held));
    let resident = process_bytes("VmRSS:").unwrap_or(held);
    lines.add("used_memory_rss", resident);
    lines.add("used_memory_rss_human", human(resident));
    let peak = process_bytes("VmHWM:").unwrap_or(held);
    lines.add("used_memory_peak", peak);
    lines.add("used_memory_peak_human", human(peak));
    lines.add("used_memory_dataset", held);
    lines.add("maxmemory", 0);
    lines.add("maxmemory_human", "0B");
    lines.add("maxmemory_policy", "noeviction");
    Ok(())
}

/// A number of bytes as Redis writes it for people: `1.50M`.
fn human(bytes: u64) -> String {
    let units = [(30, 'G'), (20, 'M'), (10, 'K')];
    match units.iter().find(|(shift, _)| bytes >= 1 << shift) {
        Some((shift, unit)) => format!("{:.2}{unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes}B"),
    }
}

/// A memory figure of this process, from the operating system.
fn process_bytes(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn persistence(connection: &Connection, lines: &mut Lines) -> Result<()> {
    lines.add("loading", 0);
    lines.add("async_loading", 0);
    lines.add("rdb_bgsave_in_progress", 0);
    lines.add("rdb_last_bgsave_status", "ok");
    lines.add("aof_enabled", 1);
    lines.add("aof_rewrite_in_progress", 0);
    lines.add("aof_last_bgrewrite_status", "ok");
    lines.add("aof_last_write_status", "ok");
    lines.add("aof_current_size", connection.home.store().engine().stats().log_bytes);
    Ok(())
}

fn stats(connection: &Connection, lines: &mut Lines) -> Result<()> {
    let [channels, patterns, shards] = connection.home.channel_counts();
    lines.add("total_connections_received", connection.home.store().hub().clients().joined());
    lines.add("rejected_connections", 0);
    lines.add("expired_keys", connection.home.store().cleaner().cleaned().total);
    lines.add("evicted_keys", 0);
    lines.add("pubsub_channels", channels);
    lines.add("pubsub_patterns", patterns);
    lines.add("pubsubshard_channels", shards);
    Ok(())
}

fn replication(_: &Connection, lines: &mut Lines) -> Result<()> {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
    lines.add("master_failover_state", "no-failover");
    lines.add("master_repl_offset", 0);
    Ok(())
}

fn cluster(_: &Connection, lines: &mut Lines) -> Result<()> {
    lines.add("cluster_enabled", 0);
    Ok(())
}

fn keyspace(connection: &Connection, lines: &mut Lines) -> Result<()> {
    for figures in connection.key_sampler.figures(&connection.home)? {
        let KeyFigures { database, keys, expires, average_ttl_ms } = figures;
        let text = format_args!("keys={keys},expires={expires},avg_ttl={average_ttl_ms}");
        lines.add(&format!("db{database}"), text);
    }
    Ok(())
}
