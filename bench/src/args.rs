//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::commands;
use crate::peers::Kind;
use crate::plan::{Compression, Plan, Settings};
use crate::rows::Row;

/// Runs one workload on lsmkv and its peers: throughput, ratios to RocksDB, verdicts.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compare: Compare,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Load a store far larger than its memory budget; fail on too much memory or too many reads.
    Big(Big),
    /// Delete, copy and sample a large hash; fail if deleting it takes longer than a small one.
    Types(Types),
    /// Redis commands on lsmkv, on RocksDB in process, and on a real redis-server: ratios, verdicts.
    Commands(Commands),
    /// Durable commits, alone, with tickets, by threads; fail if they do not share flushes.
    Commits(Commits),
    /// One peer, one repeat: started by the bench itself.
    #[command(hide = true)]
    Child {
        /// What to run, as JSON.
        task: String,
    },
    /// One peer, one repeat of the bench of commands: started by the bench itself.
    #[command(hide = true, name = commands::CHILD)]
    CommandsChild {
        /// What to run, as JSON.
        task: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Compare {
    /// Keys in the store.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) num: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    pub(crate) value_bytes: usize,
    /// Random reads of each read row [default: num].
    #[arg(long)]
    pub(crate) reads: Option<u64>,
    /// Seeks, each followed by 100 steps [default: num / 20].
    #[arg(long)]
    pub(crate) seeks: Option<u64>,
    /// Synced writes of each fillsync row.
    #[arg(long, default_value_t = 5_000)]
    pub(crate) sync_num: u64,
    /// Seconds of the row that reads while writing.
    #[arg(long, default_value_t = 3.0)]
    pub(crate) mixed_seconds: f64,
    /// Runs of each peer, interleaved; the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: u32,
    /// Block compression, for every peer that has one.
    #[arg(long, value_enum, default_value_t = Compression::None)]
    pub(crate) compression: Compression,
    /// Write buffer (memtable) of every peer that has one.
    #[arg(long, default_value = "64M", value_parser = parse_size)]
    pub(crate) write_buffer: u64,
    /// Block cache of every peer that has one.
    #[arg(long, default_value = "256M", value_parser = parse_size)]
    pub(crate) cache: u64,
    /// Bloom filter bits per key.
    #[arg(long, default_value_t = 10)]
    pub(crate) bloom_bits: u32,
    /// Seed of key order and values.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Only these rows (comma separated).
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) rows: Vec<Row>,
    /// Only these peers (comma separated).
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) peers: Vec<Kind>,
    /// Where scratch stores go [default: a temporary directory that is not a tmpfs].
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Where the JSON and the chart go.
    #[arg(long, default_value = "bench/results")]
    pub(crate) out: PathBuf,
    /// Name of the result files [default: raw-kv, or raw-kv-lz4 with that compression].
    #[arg(long)]
    name: Option<String>,
    /// Print the table, write no files.
    #[arg(long)]
    pub(crate) no_write: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Commands {
    /// Keys, members of each large collection, and small hashes: what all counts follow.
    #[arg(long, default_value_t = 150_000, value_parser = clap::value_parser!(u64).range(1..))]
    num: u64,
    /// Seconds after which a row stops, even if commands are left.
    #[arg(long, default_value_t = 1.5)]
    row_seconds: f64,
    /// Runs of each peer, interleaved; the median counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: u32,
    /// Seed of orders and values.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// Only these rows (comma separated).
    #[arg(long, value_enum, value_delimiter = ',')]
    rows: Vec<commands::rows::Row>,
    /// Only these peers (comma separated).
    #[arg(long, value_enum, value_delimiter = ',')]
    peers: Vec<commands::peers::Kind>,
    /// Where scratch stores go [default: a temporary directory that is not a tmpfs].
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Where the JSON goes.
    #[arg(long, default_value = "bench/results")]
    pub(crate) out: PathBuf,
    /// Print the table, write no file.
    #[arg(long)]
    pub(crate) no_write: bool,
}

impl Commands {
    pub(crate) fn plan(&self) -> commands::plan::Plan {
        let rows = commands::rows::Row::all();
        commands::plan::Plan {
            num: self.num,
            row_seconds: self.row_seconds,
            seed: self.seed,
            rows: rows.filter(|row| self.rows.is_empty() || self.rows.contains(row)).collect(),
            settings: Settings::default(),
        }
    }

    pub(crate) fn wanted_peers(&self) -> Vec<commands::peers::Kind> {
        let all = commands::peers::Kind::ALL.into_iter();
        all.filter(|kind| self.peers.is_empty() || self.peers.contains(kind)).collect()
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Big {
    /// Bytes of keys and values to load.
    #[arg(long, default_value = "5G", value_parser = parse_size)]
    pub(crate) bytes: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 1024)]
    pub(crate) value_bytes: usize,
    /// Random reads after the load.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) reads: u64,
    /// The store's memory budget.
    #[arg(long, default_value = "256M", value_parser = parse_size)]
    pub(crate) memory_budget: u64,
    /// Resident memory that must not be reached.
    #[arg(long, default_value = "400M", value_parser = parse_size)]
    pub(crate) max_rss: u64,
    /// Table blocks that a read may load, on average.
    #[arg(long, default_value_t = 1.05)]
    pub(crate) max_block_reads: f64,
    /// The store to load.
    #[arg(long, value_enum, default_value_t = Kind::Lsmkv)]
    pub(crate) peer: Kind,
    /// Where the scratch store goes [default: a temporary directory that is not a tmpfs].
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Seed of key order and values.
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Commits {
    /// Writes of each kind.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) num: u64,
    /// Where the scratch store goes [default: a temporary directory that is not a tmpfs].
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Types {
    /// Fields of the large hash.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) fields: u64,
    /// Deletes of each size; the median counts.
    #[arg(long, default_value_t = 11)]
    pub(crate) samples: u64,
    /// Where the scratch store goes [default: a temporary directory that is not a tmpfs].
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

impl Compare {
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            num: self.num,
            value_bytes: self.value_bytes,
            reads: self.reads.unwrap_or(self.num).max(1),
            seeks: self.seeks.unwrap_or(self.num / 20).max(1),
            scan_length: 100,
            sync_num: self.sync_num.max(1),
            mixed_seconds: self.mixed_seconds,
            seed: self.seed,
            rows: self.wanted_rows(),
            settings: Settings {
                write_buffer: self.write_buffer,
                cache: self.cache,
                bloom_bits: self.bloom_bits,
                compression: self.compression,
                ..Settings::default()
            },
        }
    }

    pub(crate) fn wanted_peers(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|k| self.peers.is_empty() || self.peers.contains(k)).collect()
    }

    pub(crate) fn name(&self) -> String {
        let default = match self.compression {
            Compression::None => "raw-kv",
            Compression::Lz4 => "raw-kv-lz4",
        };
        self.name.clone().unwrap_or_else(|| default.to_owned())
    }

    fn wanted_rows(&self) -> Vec<Row> {
        Row::all().filter(|row| self.rows.is_empty() || self.rows.contains(row)).collect()
    }
}

/// A number of bytes, or of KiB, MiB, GiB with a suffix: `4096`, `64M`, `5G`.
fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (text.trim_end_matches(['K', 'k']), 10),
        Some(b'M' | b'm') => (text.trim_end_matches(['M', 'm']), 20),
        Some(b'G' | b'g') => (text.trim_end_matches(['G', 'g']), 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| format!("not a size: {text}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("too large: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_binary_suffixes() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64M"), Ok(67_108_864));
        assert_eq!(parse_size("5g"), Ok(5_368_709_120));
        assert!(parse_size("M").is_err());
        assert!(parse_size("12X").is_err());
        assert!(parse_size("99999999999G").is_err());
    }

    #[test]
    fn counts_follow_num_unless_given() {
        let args = Args::parse_from(["bench", "--num", "2000", "--seeks", "7"]);
        let plan = args.compare.plan();
        assert_eq!((plan.num, plan.reads, plan.seeks), (2000, 2000, 7));
        assert_eq!(plan.rows.len(), Row::all().count());
    }

    #[test]
    fn a_list_of_rows_and_peers_selects_them_in_table_order() {
        let args =
            Args::parse_from(["bench", "--rows", "readseq,fillseq", "--peers", "lmdb,rocksdb"]);
        assert_eq!(args.compare.plan().rows, [Row::Fillseq, Row::Readseq]);
        assert_eq!(args.compare.wanted_peers(), [Kind::Rocksdb, Kind::Lmdb]);
    }
}
