//! Every setting of a store: typed fields for Rust, and names with values as text for the C ABI.
//!
//! One table declares them all. Each row gives the field of [`Options`] with its documentation, its
//! default, its name as text, its parser, and the range that [`Options::validate`] enforces.
//! Nothing about an option is written twice.

mod nearest;
mod value;

use crate::error::{Error, ErrorKind, Result};
use value::{Rule, Value};

/// A fuzzer may do the work of the background threads in its own.
const FEWEST_THREADS: u64 = if cfg!(feature = "fuzzing") { 0 } else { 1 };

/// When writes are flushed to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Before the write returns. Concurrent writers share a flush.
    Always,
    /// In the background, every [`Options::sync_interval_ms`].
    Interval,
    /// When the operating system decides to.
    Off,
}

/// Block compression of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Blocks are stored uncompressed.
    None,
    /// Blocks are compressed with LZ4 if that makes them smaller.
    Lz4,
}

/// Whether a server asks its clients for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A client without a valid certificate is refused.
    Required,
    /// A client may have none; one that it has must be valid.
    Optional,
    /// No client is asked.
    Ignored,
}

/// An option as [`Options::describe`] lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name that [`Options::set`] accepts.
    pub name: &'static str,
    /// The default, in the form that [`Options::set`] accepts.
    pub default: String,
    /// What the option does.
    pub doc: &'static str,
}

/// A row of the table, seen as text.
struct Row {
    name: &'static str,
    doc: &'static str,
    set: fn(&mut Options, &str) -> std::result::Result<(), String>,
    show: fn(&Options) -> String,
    check: fn(&Options) -> std::result::Result<(), String>,
}

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:expr, $rule:expr;)+) => {
        /// Settings for opening a store. `Options::default()` suits most uses.
        ///
        /// ```
        /// use lsmkv::{Options, SyncMode};
        ///
        /// let mut options = Options { sync: SyncMode::Always, ..Options::default() };
        /// options.set("memory_budget", "64MiB")?;
        /// assert_eq!(options.memory_budget, 64 << 20);
        /// # Ok::<(), lsmkv::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        pub struct Options {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        const TABLE: &[Row] = &[$(Row {
            name: stringify!($name),
            doc: concat!($($doc),+).trim_ascii_start(),
            set: |options, text| {
                options.$name = Value::parse(text, &$rule)?;
                Ok(())
            },
            show: |options| Value::show(&options.$name, &$rule),
            check: |options| Value::check(&options.$name, &$rule),
        },)+];
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

options! {
    /// When a write is flushed to the device: `always` before it returns, `interval` in the
    /// background, `off` when the operating system decides to.
    sync: SyncMode = SyncMode::Interval, Rule::Choice;
    /// Milliseconds between background flushes when `sync` is `interval`.
    sync_interval_ms: u64 = 1000, Rule::Count(1, 3_600_000);
    /// Memory for buffers, cache, filters and indexes together.
    memory_budget: u64 = 256 * MIB, Rule::Size(MIB, 16 * TIB);
    /// Bytes of all trees' memtables before they are flushed; 0 derives it from the budget.
    write_buffer: u64 = 0, Rule::SizeOrZero(64 * KIB, TIB);
    /// Bytes of the block cache; 0 derives it from the budget.
    block_cache: u64 = 0, Rule::Size(0, 16 * TIB);
    /// Block compression of tables: `none` or `lz4`.
    compression: Compression = Compression::None, Rule::Choice;
    /// Whether to create a store where there is none.
    create_if_missing: bool = true, Rule::Choice;
    /// Whether to fail if there is a store already.
    error_if_exists: bool = false, Rule::Choice;
    /// Whether to refuse writes and change nothing on disk. A store that is open elsewhere is read
    /// beside its writer.
    read_only: bool = false, Rule::Choice;
    /// Whether several processes may have the store open: the first one holds it and serves the
    /// others on a socket in its directory; when it ends, another one takes over.
    shared: bool = false, Rule::Choice;
    /// Threads for compaction, beside the one that flushes.
    background_threads: u32 = 1, Rule::Count(FEWEST_THREADS, 64);
    /// Longest key accepted. Flushes and merges hold several copies of a key. Redis accepts 512 MiB.
    max_key_bytes: u64 = 16 * MIB, Rule::Size(1, 512 * MIB);
    /// Longest value accepted.
    max_value_bytes: u64 = 512 * MIB, Rule::Size(1, 512 * MIB);
    /// Bloom filter bits per key; 0 turns filters off.
    bloom_bits: u32 = 10, Rule::Count(0, 32);
    /// Size of a level relative to the one above it.
    level_ratio: u32 = 10, Rule::Count(2, 100);
    /// Bytes per second that compaction may write; 0 for no limit.
    compaction_rate_limit: u64 = 0, Rule::SizeOrZero(64 * KIB, TIB);
    /// Bytes of a table file before the next one is begun.
    table_bytes: u64 = 32 * MIB, Rule::Size(4 * KIB, GIB);
    /// Bytes of a data block before compression.
    block_bytes: u32 = 4096, Rule::Size(64, MIB);
    /// Largest log segment; the first ones are smaller.
    log_segment_bytes: u64 = 16 * MIB, Rule::Size(4 * KIB, GIB);
    /// Disk space set aside, so that a full disk still takes deletes; 0 for none.
    disk_reserve: u64 = 4 * MIB, Rule::SizeOrZero(256 * KIB, GIB);
    /// Table files open at once; others are opened again when they are read.
    max_open_files: u32 = 512, Rule::Count(8, 1_000_000);
    /// Numbered databases of the store.
    databases: u32 = 16, Rule::Count(1, 65_535);
    /// Seconds between rounds of the thread that deletes expired keys; 0 turns it off.
    ttl_cleaner_interval_s: u64 = 60, Rule::Count(0, 86_400);
    /// Expired keys that thread deletes in one commit.
    ttl_cleaner_batch: u32 = 1000, Rule::Count(1, 100_000);
    /// Seconds within which each table is looked at for space that could come back; 0 turns it off.
    reclaim_interval_s: u64 = 300, Rule::Count(0, 86_400);
    /// Members up to which a hash, set or sorted set is kept whole in its record; 0 turns it off.
    packed_max_members: u32 = 128, Rule::Count(0, 1024);
    /// Bytes of members and values up to which it is; a quarter of `txn_max_bytes` and of
    /// `log_segment_bytes` at most.
    packed_max_bytes: u32 = 1024, Rule::Size(16, 16 * KIB);
    /// Bytes up to which a string is kept whole in its record; a longer one is kept in chunks.
    inline_max_bytes: u64 = 64 * KIB, Rule::Size(16, 512 * MIB);
    /// Bytes of a chunk of a string; a power of two. What a change of a string writes at least.
    chunk_bytes: u64 = 8 * KIB, Rule::Size(16, MIB);
    /// Bytes of memory a transaction may take before its commands fail.
    txn_max_bytes: u64 = 64 * MIB, Rule::Size(4 * KIB, 16 * GIB);
    /// Milliseconds after which a script counts as slow: a write that waits for its keys then fails
    /// with BUSY; 0 lets writes wait.
    script_busy_ms: u64 = 5000, Rule::Count(0, 86_400_000);
    /// Milliseconds after which a script is stopped and nothing that it wrote remains; 0 for no
    /// limit.
    script_max_ms: u64 = 10_000, Rule::Count(0, 86_400_000);
    /// Bytes of memory that the Lua values of one script may take.
    script_max_memory: u64 = 256 * MIB, Rule::Size(MIB, 16 * GIB);
    /// Bytes of memory that the writes of one script may take before its commands fail.
    script_max_bytes: u64 = 64 * MIB, Rule::Size(4 * KIB, 16 * GIB);
    /// Classes of key events that are sent, as the letters of Redis's `notify-keyspace-events`.
    notify_keyspace_events: String = String::new(), Rule::Letters("KEg$lshzxetdmnA");
    /// Milliseconds within which a connection to a remote store is made.
    connect_timeout_ms: u64 = 5000, Rule::Count(1, 3_600_000);
    /// Milliseconds that a remote store may be silent during a reply; 0 for no limit.
    reply_timeout_ms: u64 = 30_000, Rule::Count(0, 86_400_000);
    /// File of certificates (PEM) that `rediss://` trusts; empty for those that the system trusts.
    tls_ca_file: String = String::new(), Rule::Text;
    /// File of the certificate (PEM) that this side of `rediss://` shows; empty for none.
    tls_cert_file: String = String::new(), Rule::Text;
    /// File of the private key (PEM) of `tls_cert_file`.
    tls_key_file: String = String::new(), Rule::Text;
    /// Name that the certificate of a `rediss://` server must be for; empty for the host.
    tls_server_name: String = String::new(), Rule::Text;
    /// Whether `rediss://` accepts any certificate: whoever is on the way can then read everything.
    tls_insecure: bool = false, Rule::Choice;
    /// Whether the writes of a script that fails remain, as in Redis; otherwise they are undone.
    script_keeps_writes: bool = false, Rule::Choice;
    /// Password that clients of a server must give (AUTH); empty for none.
    server_password: String = String::new(), Rule::Text;
    /// Clients that a server accepts at once.
    server_max_clients: u32 = 10_000, Rule::Count(1, 1_000_000);
    /// Seconds after which a server closes an idle client; 0 for never.
    server_idle_timeout_s: u32 = 0, Rule::Count(0, 31_536_000);
    /// Threads of a server; 0 chooses.
    server_threads: u32 = 0, Rule::Count(0, 64);
    /// Whether a server may listen beyond this machine without a password.
    server_unprotected: bool = false, Rule::Choice;
    /// File of the certificate (PEM) of a server on `tls:HOST:PORT`, followed by those between it
    /// and its authority.
    server_tls_cert_file: String = String::new(), Rule::Text;
    /// File of the private key (PEM) of `server_tls_cert_file`.
    server_tls_key_file: String = String::new(), Rule::Text;
    /// File of certificates (PEM) that the certificates of clients must come from.
    server_tls_ca_file: String = String::new(), Rule::Text;
    /// Whether clients on `tls:HOST:PORT` need a certificate: `yes`, `no`, or `optional`.
    server_tls_auth_clients: ClientCertificates = ClientCertificates::Required, Rule::Choice;
}

impl Options {
    /// Sets the option `name` from text. An unknown name or a value that is not allowed changes
    /// nothing. The error then gives the nearest valid name or the allowed values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(row) = TABLE.iter().find(|row| row.name == name) else {
            return Err(unknown_name(name));
        };
        (row.set)(self, value).map_err(|allowed| {
            let message = format!("option {name}: '{value}' is not allowed, use {allowed}");
            Error::new(ErrorKind::Invalid, message)
        })
    }

    /// Every option with its default and what it does, in the order of the table.
    pub fn describe() -> impl ExactSizeIterator<Item = Description> {
        let defaults = Self::default();
        TABLE.iter().map(move |row| Description {
            name: row.name,
            default: (row.show)(&defaults),
            doc: row.doc,
        })
    }

    /// Checks that every value is in its range and that no two contradict each other. Opening calls
    /// it.
    pub fn validate(&self) -> Result<()> {
        for row in TABLE {
            (row.check)(self).map_err(|allowed| {
                let (name, value) = (row.name, (row.show)(self));
                let message = format!("option {name}: {value} is not allowed, use {allowed}");
                Error::new(ErrorKind::Invalid, message)
            })?;
        }
        let contradiction = self.contradiction();
        contradiction.map_or(Ok(()), |text| Err(Error::new(ErrorKind::Invalid, text)))
    }

    fn contradiction(&self) -> Option<&'static str> {
        if self.error_if_exists && self.read_only {
            return Some(
                "error_if_exists and read_only contradict each other: a read-only open needs a \
                 store that exists; turn one of them off",
            );
        }
        if self.shared && (self.read_only || self.error_if_exists) {
            return Some(
                "shared does not go with read_only or error_if_exists: a reader needs no sharing, \
                 and one of several processes creates the store for all; turn one of them off",
            );
        }
        if self.error_if_exists && !self.create_if_missing {
            return Some(
                "error_if_exists without create_if_missing can never open anything; turn \
                 create_if_missing on or error_if_exists off",
            );
        }
        if self.write_buffer.saturating_add(self.block_cache) > self.memory_budget {
            return Some(
                "write_buffer and block_cache together exceed memory_budget; raise memory_budget \
                 or leave them 0 to derive them from it",
            );
        }
        if !self.chunk_bytes.is_power_of_two() {
            return Some("chunk_bytes is not a power of two; use one, such as 8KiB");
        }
        None
    }
}

fn unknown_name(name: &str) -> Error {
    let names = TABLE.iter().map(|row| row.name);
    let advice = match nearest::nearest(name, names) {
        Some(near) => format!("did you mean '{near}'?"),
        None => "Options::describe and lsmkv_options_info list the names".to_owned(),
    };
    Error::new(ErrorKind::Invalid, format!("there is no option '{name}': {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: &str) -> String {
        let mut options = Options::default();
        let error = options.set(name, value).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(options, Options::default(), "a refused value changed something");
        error.message().to_owned()
    }

    #[test]
    fn every_option_accepts_its_own_default_as_text() {
        let mut options = Options::default();
        for row in Options::describe() {
            options.set(row.name, &row.default).unwrap();
            assert!(!row.doc.is_empty() && row.doc.ends_with('.'), "{}: {}", row.name, row.doc);
        }
        assert_eq!(options, Options::default());
    }

    #[test]
    fn the_defaults_are_valid() {
        Options::default().validate().unwrap();
    }

    #[test]
    fn values_are_read_as_sizes_counts_flags_and_choices() {
        let mut options = Options::default();
        for (name, value) in [
            ("sync", "always"),
            ("memory_budget", "1GiB"),
            ("write_buffer", "64MB"),
            ("block_bytes", "8192"),
            ("compression", "lz4"),
            ("read_only", "on"),
            ("bloom_bits", "12"),
        ] {
            options.set(name, value).unwrap();
        }
        assert_eq!(options.sync, SyncMode::Always);
        assert_eq!(options.memory_budget, 1 << 30);
        assert_eq!(options.write_buffer, 64_000_000);
        assert_eq!(options.block_bytes, 8192);
        assert_eq!(options.compression, Compression::Lz4);
        assert!(options.read_only);
        assert_eq!(options.bloom_bits, 12);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_one() {
        assert!(refusal("memory_budgt", "1MiB").contains("did you mean 'memory_budget'?"));
        assert!(refusal("synch", "always").contains("did you mean 'sync'?"));
        assert!(refusal("qqqqqqqqqqqq", "1").contains("lsmkv_options_info"));
    }

    #[test]
    fn a_bad_value_is_answered_with_what_is_allowed() {
        assert!(refusal("sync", "sometimes").contains("always, interval or off"));
        assert!(refusal("read_only", "maybe").contains("on or off"));
        assert!(refusal("bloom_bits", "33").contains("0 to 32"));
        assert!(refusal("memory_budget", "lots").contains("1MiB to 16TiB"));
    }

    #[test]
    fn a_field_out_of_its_range_is_refused_at_open() {
        let options = Options { level_ratio: 1, ..Options::default() };
        assert!(options.validate().unwrap_err().message().contains("2 to 100"));
        let options = Options { write_buffer: 1, ..Options::default() };
        assert!(options.validate().unwrap_err().message().contains("64KiB to 1TiB, or 0"));
    }

    #[test]
    fn contradictions_are_refused_at_open() {
        let plain = Options::default;
        for options in [
            Options { error_if_exists: true, read_only: true, ..plain() },
            Options { error_if_exists: true, create_if_missing: false, ..plain() },
            Options { write_buffer: 200 << 20, block_cache: 200 << 20, ..plain() },
            Options { chunk_bytes: 3 << 10, ..plain() },
            Options { shared: true, read_only: true, ..plain() },
            Options { shared: true, error_if_exists: true, ..plain() },
        ] {
            assert_eq!(options.validate().unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
