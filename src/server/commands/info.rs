//! INFO: sections of `name:value` lines.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use crate::admin::StatValue;
use crate::types::KeyFigures;

use super::Call;
use super::connection::REDIS_VERSION;
use crate::server::clock::unix_seconds;
use crate::server::counters::{CallCounts, Counter, Counters};
use crate::server::shared::Server;

/// A section of INFO.
struct Section {
    name: &'static str,
    write: fn(&Server, &mut SectionText),
    /// Whether INFO without arguments leaves the section out.
    on_demand: bool,
}

impl Section {
    const fn new(name: &'static str, write: fn(&Server, &mut SectionText)) -> Self {
        Self { name, write, on_demand: false }
    }

    const fn on_demand(self) -> Self {
        Self { on_demand: true, ..self }
    }
}

/// The sections in the order of the reply.
const SECTIONS: &[Section] = &[
    Section::new("server", server),
    Section::new("clients", clients),
    Section::new("memory", memory),
    Section::new("persistence", persistence),
    Section::new("stats", stats),
    Section::new("replication", replication),
    Section::new("cpu", cpu),
    Section::new("errorstats", errorstats),
    Section::new("cluster", cluster),
    Section::new("keyspace", keyspace),
    Section::new("commandstats", commandstats).on_demand(),
    Section::new("lsmkv", lsmkv_stats).on_demand(),
];

/// The text of a section.
#[derive(Default)]
struct SectionText(String);

impl SectionText {
    fn add(&mut self, name: &str, value: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }
}

pub(super) fn info(call: &mut Call<'_, '_>) {
    let asked: Vec<_> = call
        .rest(1)
        .iter()
        .map(|name| String::from_utf8_lossy(name).to_ascii_lowercase())
        .collect();
    let all = asked.iter().any(|name| name == "all" || name == "everything");
    let usual = asked.is_empty() || asked.iter().any(|name| name == "default");
    let wanted = |section: &&Section| {
        all || (usual && !section.on_demand) || asked.iter().any(|other| other == section.name)
    };
    let mut text = String::new();
    for section in SECTIONS.iter().filter(wanted) {
        let mut lines = SectionText::default();
        (section.write)(call.server, &mut lines);
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let (first, rest) = section.name.split_at_checked(1).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(text, "# {}{rest}\r\n{}", first.to_ascii_uppercase(), lines.0);
    }
    call.out.verbatim(&text);
}

fn server(server: &Server, lines: &mut SectionText) {
    let uptime = server.started.elapsed().as_secs();
    lines.add("redis_version", REDIS_VERSION);
    lines.add("redis_mode", "standalone");
    lines.add("lsmkv_version", env!("CARGO_PKG_VERSION"));
    lines.add("os", std::env::consts::OS);
    lines.add("arch_bits", usize::BITS);
    lines.add("multiplexing_api", "epoll");
    lines.add("process_id", std::process::id());
    lines.add("run_id", &server.run_id);
    lines.add("tcp_port", server.settings.value("port"));
    lines.add("server_time_usec", unix_seconds().saturating_mul(1_000_000));
    lines.add("uptime_in_seconds", uptime);
    lines.add("uptime_in_days", uptime / 86_400);
    lines.add("hz", server.settings.value("hz"));
    lines.add("io_threads_active", server.counters.len());
}

fn clients(server: &Server, lines: &mut SectionText) {
    let all = server.clients.list();
    let most = |sizes: &mut dyn Iterator<Item = usize>| sizes.max().unwrap_or(0);
    lines.add("connected_clients", server.clients.count());
    lines.add("cluster_connections", 0);
    lines.add("maxclients", server.settings.max_clients());
    let input = most(&mut all.iter().map(|info| info.input_bytes.load(Relaxed)));
    lines.add("client_recent_max_input_buffer", input);
    let output = most(&mut all.iter().map(|info| info.output_bytes.load(Relaxed)));
    lines.add("client_recent_max_output_buffer", output);
    let blocked = all.iter().filter(|info| info.blocked.load(Relaxed));
    lines.add("blocked_clients", blocked.count());
    lines.add("pubsub_clients", all.iter().filter(|info| info.is_subscribed()).count());
    lines.add("tracking_clients", server.db.tracking_counts().clients);
    lines.add("clients_in_timeout_table", 0);
}

fn memory(server: &Server, lines: &mut SectionText) {
    let engine = server.db.engine_stats();
    let buffers = server.clients.buffered();
    let held = engine.memtable_bytes + engine.cache_bytes + engine.resident_bytes;
    lines.add("used_memory", held + buffers as u64);
    lines.add("used_memory_rss", process_bytes("VmRSS:").unwrap_or(held));
    lines.add("used_memory_peak", process_bytes("VmHWM:").unwrap_or(held));
    lines.add("used_memory_dataset", held);
    lines.add("mem_clients_normal", buffers);
    lines.add("maxmemory", server.settings.value("maxmemory"));
    lines.add("maxmemory_policy", server.settings.value("maxmemory-policy"));
    lines.add("mem_allocator", server.allocator);
}

/// A memory figure of this process, from the operating system.
pub fn process_bytes(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn persistence(server: &Server, lines: &mut SectionText) {
    let status = if server.background_save.last_failed() { "err" } else { "ok" };
    let engine = server.db.engine_stats();
    lines.add("loading", 0);
    lines.add("async_loading", 0);
    lines.add("rdb_bgsave_in_progress", u8::from(server.background_save.is_running()));
    lines.add("rdb_last_save_time", server.background_save.last_s());
    lines.add("rdb_last_bgsave_status", status);
    lines.add("aof_enabled", 1);
    lines.add("aof_rewrite_in_progress", 0);
    lines.add("aof_last_bgrewrite_status", "ok");
    lines.add("aof_last_write_status", "ok");
    lines.add("aof_current_size", engine.log_bytes);
}

fn sum(server: &Server, of: impl Fn(&Counters) -> &Counter) -> u64 {
    server.counters.iter().map(|counters| of(counters).get()).sum()
}

fn stats(server: &Server, lines: &mut SectionText) {
    lines.add("total_connections_received", sum(server, |c| &c.connections));
    lines.add("total_commands_processed", sum(server, |c| &c.commands));
    lines.add("total_net_input_bytes", sum(server, |c| &c.input_bytes));
    lines.add("total_net_output_bytes", sum(server, |c| &c.output_bytes));
    lines.add("rejected_connections", sum(server, |c| &c.rejected));
    lines.add("total_error_replies", sum(server, |c| &c.errors));
    lines.add("evicted_clients", sum(server, |c| &c.evicted));
    lines.add("evicted_keys", 0);
    lines.add("expired_keys", stat(server, "cleaner_deleted"));
    let tracking = server.db.tracking_counts();
    lines.add("tracking_total_keys", tracking.keys);
    lines.add("tracking_total_items", tracking.items);
    lines.add("tracking_total_prefixes", tracking.prefixes);
    let [channels, patterns, shards] = server.db.channel_counts();
    lines.add("pubsub_channels", channels);
    lines.add("pubsub_patterns", patterns);
    lines.add("pubsubshard_channels", shards);
    lines.add("latest_fork_usec", 0);
}

fn replication(_: &Server, lines: &mut SectionText) {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
    lines.add("master_failover_state", "no-failover");
    lines.add("master_repl_offset", 0);
}

fn cpu(_: &Server, lines: &mut SectionText) {
    let Some((user, system)) = cpu_seconds() else { return };
    lines.add("used_cpu_sys", format_args!("{system:.6}"));
    lines.add("used_cpu_user", format_args!("{user:.6}"));
}

/// The CPU seconds of this process, in user mode and in the kernel.
fn cpu_seconds() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let rest = text.rsplit_once(')')?.1;
    let mut ticks = rest.split_whitespace().skip(11);
    let mut next = || Some(ticks.next()?.parse::<f64>().ok()? / 100.0);
    Some((next()?, next()?))
}

fn errorstats(server: &Server, lines: &mut SectionText) {
    lines.add("errorstat_ALL", format_args!("count={}", sum(server, |c| &c.errors)));
}

fn cluster(_: &Server, lines: &mut SectionText) {
    lines.add("cluster_enabled", 0);
}

fn commandstats(server: &Server, lines: &mut SectionText) {
    for entry in server.commands.entries() {
        let counts = Counters::calls_of(&server.counters, entry.index);
        let CallCounts { ran, failed, rejected, micros } = counts;
        if counts != CallCounts::default() {
            let each = micros as f64 / ran.max(1) as f64;
            let text = format!(
                "calls={ran},usec={micros},usec_per_call={each:.2},\
                 rejected_calls={rejected},failed_calls={failed}"
            );
            lines.add(&format!("cmdstat_{}", entry.name), text);
        }
    }
}

/// The statistics of the store.
fn lsmkv_stats(server: &Server, lines: &mut SectionText) {
    for stat in server.db.stats().unwrap_or_default() {
        match stat.value {
            StatValue::Count(count) => lines.add(stat.name, count),
            StatValue::Ratio(ratio) => lines.add(stat.name, format_args!("{ratio:.4}")),
        }
    }
}

fn stat(server: &Server, name: &str) -> u64 {
    match server.db.stat(name).ok().flatten().map(|stat| stat.value) {
        Some(StatValue::Count(count)) => count,
        _ => 0,
    }
}

fn keyspace(server: &Server, lines: &mut SectionText) {
    for figures in server.keyspace.figures(&server.db).unwrap_or_default() {
        let KeyFigures { database, keys, expires, average_ttl_ms } = figures;
        let text = format_args!("keys={keys},expires={expires},avg_ttl={average_ttl_ms}");
        lines.add(&format!("db{database}"), text);
    }
}
