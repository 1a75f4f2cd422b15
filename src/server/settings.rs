//! The parameters of CONFIG GET and CONFIG SET.
//!
//! The server accepts Redis's names, because clients and test suites set them. Parameters of
//! Redis's in-memory encodings are stored and have no effect. Parameters that the server reads in
//! every turn are cached as numbers beside the table.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::output_classes::OutputClasses;
use crate::options::SyncMode;
use crate::txn::Db;

const RELAXED: Ordering = Ordering::Relaxed;

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    /// None: the value is set when the server starts.
    Fixed,
    /// Any text.
    Text,
    /// A number in a range.
    Number(i64, i64),
    /// A number of bytes, at least this, with an optional unit.
    Bytes(usize),
    /// `yes` or `no`.
    YesNo,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Limits by class of clients.
    OutputClasses,
    /// Letters of classes of key events.
    KeyEvents,
}

/// A parameter: name, accepted values, default.
type Parameter = (&'static str, ValueKind, &'static str);

const MAX_NUMBER: i64 = i64::MAX;
/// A client can always send a request of this size, so it can undo a limit that is too low.
const MIN_REQUEST_LIMIT: usize = 1 << 20;

const PARAMETERS: &[Parameter] = &[
    ("activedefrag", ValueKind::YesNo, "no"),
    ("appendfsync", ValueKind::Choice(&["always", "everysec", "no"]), "everysec"),
    ("appendonly", ValueKind::Choice(&["yes"]), "yes"),
    ("bind", ValueKind::Fixed, ""),
    ("busy-reply-threshold", ValueKind::Number(0, MAX_NUMBER), "5000"),
    ("client-output-buffer-limit", ValueKind::OutputClasses, ""),
    ("client-query-buffer-limit", ValueKind::Bytes(MIN_REQUEST_LIMIT), "1073741824"),
    ("databases", ValueKind::Fixed, "16"),
    ("dbfilename", ValueKind::Text, "dump.rdb"),
    ("dir", ValueKind::Fixed, ""),
    ("hash-max-listpack-entries", ValueKind::Number(0, MAX_NUMBER), "512"),
    ("hash-max-listpack-value", ValueKind::Number(0, MAX_NUMBER), "64"),
    ("hash-max-ziplist-entries", ValueKind::Number(0, MAX_NUMBER), "512"),
    ("hash-max-ziplist-value", ValueKind::Number(0, MAX_NUMBER), "64"),
    ("hz", ValueKind::Number(1, 500), "10"),
    ("latency-monitor-threshold", ValueKind::Number(0, MAX_NUMBER), "0"),
    ("lazyfree-lazy-eviction", ValueKind::YesNo, "no"),
    ("lazyfree-lazy-expire", ValueKind::YesNo, "no"),
    ("lazyfree-lazy-server-del", ValueKind::YesNo, "no"),
    ("lazyfree-lazy-user-del", ValueKind::YesNo, "no"),
    ("list-compress-depth", ValueKind::Number(0, MAX_NUMBER), "0"),
    ("list-max-listpack-size", ValueKind::Number(-5, MAX_NUMBER), "-2"),
    ("list-max-ziplist-size", ValueKind::Number(-5, MAX_NUMBER), "-2"),
    ("loglevel", ValueKind::Choice(&["debug", "verbose", "notice", "warning"]), "notice"),
    ("lua-time-limit", ValueKind::Number(0, MAX_NUMBER), "5000"),
    ("maxclients", ValueKind::Number(1, 1_000_000), "10000"),
    ("maxmemory", ValueKind::Bytes(0), "0"),
    ("maxmemory-clients", ValueKind::Bytes(0), "1073741824"),
    ("maxmemory-policy", ValueKind::Choice(&["noeviction"]), "noeviction"),
    ("notify-keyspace-events", ValueKind::KeyEvents, ""),
    ("port", ValueKind::Fixed, "0"),
    ("proto-max-bulk-len", ValueKind::Bytes(MIN_REQUEST_LIMIT), "536870912"),
    ("requirepass", ValueKind::Text, ""),
    ("save", ValueKind::Text, ""),
    ("set-max-intset-entries", ValueKind::Number(0, MAX_NUMBER), "512"),
    ("set-max-listpack-entries", ValueKind::Number(0, MAX_NUMBER), "128"),
    ("set-max-listpack-value", ValueKind::Number(0, MAX_NUMBER), "64"),
    ("slowlog-log-slower-than", ValueKind::Number(-1, MAX_NUMBER), "10000"),
    ("slowlog-max-len", ValueKind::Number(0, MAX_NUMBER), "128"),
    ("stop-writes-on-bgsave-error", ValueKind::YesNo, "yes"),
    ("tcp-keepalive", ValueKind::Number(0, MAX_NUMBER), "300"),
    ("timeout", ValueKind::Number(0, 31_536_000), "0"),
    ("tls-auth-clients", ValueKind::Fixed, "yes"),
    ("tls-ca-cert-file", ValueKind::Fixed, ""),
    ("tls-cert-file", ValueKind::Fixed, ""),
    ("tls-key-file", ValueKind::Fixed, ""),
    ("tls-port", ValueKind::Fixed, "0"),
    ("tracking-table-max-keys", ValueKind::Number(0, MAX_NUMBER), "1000000"),
    ("unixsocket", ValueKind::Fixed, ""),
    ("zset-max-listpack-entries", ValueKind::Number(0, MAX_NUMBER), "128"),
    ("zset-max-listpack-value", ValueKind::Number(0, MAX_NUMBER), "64"),
    ("zset-max-ziplist-entries", ValueKind::Number(0, MAX_NUMBER), "128"),
    ("zset-max-ziplist-value", ValueKind::Number(0, MAX_NUMBER), "64"),
];

/// The current values of all parameters.
#[derive(Debug)]
pub(crate) struct Settings {
    values: RwLock<BTreeMap<&'static str, String>>,
    /// Whether a reply waits until its write is durable.
    durable: AtomicBool,
    /// Whether writes are flushed every second.
    flushes_every_second: AtomicBool,
    has_password: AtomicBool,
    max_clients: AtomicUsize,
    idle_limit_s: AtomicU64,
    bulk_limit: AtomicUsize,
    input_limit: AtomicUsize,
    output_limit: AtomicUsize,
    monitor_limit: AtomicUsize,
    buffers_limit: AtomicUsize,
}

impl Settings {
    /// Settings with default values.
    pub(crate) fn new() -> Self {
        let values = PARAMETERS.iter().map(|(name, _, value)| (*name, (*value).to_owned()));
        let mut values: BTreeMap<_, _> = values.collect();
        values.insert("client-output-buffer-limit", OutputClasses::default().text());
        let settings = Self {
            values: RwLock::new(values),
            durable: AtomicBool::new(false),
            flushes_every_second: AtomicBool::new(false),
            has_password: AtomicBool::new(false),
            max_clients: AtomicUsize::new(0),
            idle_limit_s: AtomicU64::new(0),
            bulk_limit: AtomicUsize::new(0),
            input_limit: AtomicUsize::new(0),
            output_limit: AtomicUsize::new(0),
            monitor_limit: AtomicUsize::new(0),
            buffers_limit: AtomicUsize::new(0),
        };
        settings.refresh();
        settings
    }

    /// Settings with the values that the store has.
    pub(crate) fn of_store(db: &Db) -> Self {
        let settings = Self::new();
        let flushes = match db.durability() {
            SyncMode::Always => "always",
            SyncMode::Interval => "everysec",
            SyncMode::Off => "no",
        };
        settings.set_initial("appendfsync", &flushes);
        settings.set_initial("databases", &db.databases());
        settings.set_initial("notify-keyspace-events", &db.keyspace_events());
        settings.set_initial("lua-time-limit", &db.script_busy_ms());
        settings.set_initial("busy-reply-threshold", &db.script_busy_ms());
        settings
    }

    /// Sets a value when the server starts, whether or not CONFIG SET could change it.
    pub(crate) fn set_initial(&self, name: &'static str, value: &impl ToString) {
        self.values.write().insert(name, value.to_string());
        self.refresh();
    }

    /// Every parameter with its value, by name.
    pub(crate) fn all(&self) -> Vec<(&'static str, String)> {
        self.values.read().iter().map(|(name, value)| (*name, value.clone())).collect()
    }

    pub(crate) fn value(&self, name: &str) -> String {
        self.values.read().get(name).cloned().unwrap_or_default()
    }

    /// Sets all of these and returns their names, or sets none and returns the error.
    pub(crate) fn set(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<&'static str>, String> {
        let mut accepted = Vec::new();
        for (name, value) in pairs {
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            let Some((known, kind, _)) = PARAMETERS.iter().find(|row| row.0 == name) else {
                return Err(format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                ));
            };
            let value = std::str::from_utf8(value).map_err(|_| rejection(&name, "not a text"))?;
            let value = match kind {
                ValueKind::OutputClasses => self.output_classes().with(value).map(|it| it.text()),
                kind => normalize(*kind, value),
            };
            accepted.push((*known, value.map_err(|why| rejection(&name, why))?));
        }
        // Two names of one parameter.
        let names = ["busy-reply-threshold", "lua-time-limit"];
        if let Some((_, value)) = accepted.iter().rev().find(|(name, _)| names.contains(name)) {
            let value = value.clone();
            accepted.extend(names.map(|name| (name, value.clone())));
        }
        let names = accepted.iter().map(|(name, _)| *name).collect();
        self.values.write().extend(accepted);
        self.refresh();
        Ok(names)
    }

    fn refresh(&self) {
        let bytes = |name: &str| self.value(name).parse::<usize>().unwrap_or(usize::MAX);
        let flushes = self.value("appendfsync");
        self.durable.store(flushes == "always", RELAXED);
        self.flushes_every_second.store(flushes == "everysec", RELAXED);
        self.has_password.store(!self.value("requirepass").is_empty(), RELAXED);
        self.max_clients.store(bytes("maxclients"), RELAXED);
        self.idle_limit_s.store(bytes("timeout") as u64, RELAXED);
        self.bulk_limit.store(bytes("proto-max-bulk-len"), RELAXED);
        self.input_limit.store(bytes("client-query-buffer-limit"), RELAXED);
        let or_none = |limit| if limit == 0 { usize::MAX } else { limit };
        let classes = self.output_classes();
        self.output_limit.store(or_none(classes.normal_bytes()), RELAXED);
        self.monitor_limit.store(or_none(classes.monitor_bytes()), RELAXED);
        self.buffers_limit.store(bytes("maxmemory-clients"), RELAXED);
    }

    /// The limits of unsent replies and messages by class of clients.
    pub(crate) fn output_classes(&self) -> OutputClasses {
        let classes = OutputClasses::default();
        classes.with(&self.value("client-output-buffer-limit")).unwrap_or(classes)
    }

    pub(crate) fn durable(&self) -> bool {
        self.durable.load(RELAXED)
    }

    pub(crate) fn flushes_every_second(&self) -> bool {
        self.flushes_every_second.load(RELAXED)
    }

    pub(crate) fn needs_password(&self) -> bool {
        self.has_password.load(RELAXED)
    }

    /// Whether this is the password. The time depends on its length, not on where it differs.
    pub(crate) fn is_password(&self, given: &[u8]) -> bool {
        let password = self.value("requirepass").into_bytes();
        let differing = |(a, b): (&u8, &u8)| usize::from(a != b);
        let wrong: usize = password.iter().zip(given).map(differing).sum();
        wrong == 0 && password.len() == given.len()
    }

    pub(crate) fn max_clients(&self) -> usize {
        self.max_clients.load(RELAXED)
    }

    /// The seconds after which an idle client is closed; zero for never.
    pub(crate) fn idle_limit_s(&self) -> u64 {
        self.idle_limit_s.load(RELAXED)
    }

    pub(crate) fn bulk_limit(&self) -> usize {
        self.bulk_limit.load(RELAXED)
    }

    pub(crate) fn input_limit(&self) -> usize {
        self.input_limit.load(RELAXED)
    }

    /// The maximum number of bytes of unsent replies for one client.
    pub(crate) fn output_limit(&self) -> usize {
        self.output_limit.load(RELAXED)
    }

    /// The maximum number of bytes that wait for a client that monitors.
    pub(crate) fn monitor_limit(&self) -> usize {
        self.monitor_limit.load(RELAXED)
    }

    /// The maximum size of the buffers of all clients together; zero for no limit.
    pub(crate) fn buffers_limit(&self) -> usize {
        self.buffers_limit.load(RELAXED)
    }
}

fn rejection(name: &str, why: &str) -> String {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
}

/// Checks a value and returns it in the form that CONFIG GET shows.
fn normalize(kind: ValueKind, value: &str) -> Result<String, &'static str> {
    match kind {
        ValueKind::Fixed => Err("can't set immutable config"),
        ValueKind::Text | ValueKind::OutputClasses => Ok(value.to_owned()),
        ValueKind::KeyEvents => crate::messages::normalized_event_classes(value)
            .map_err(|_| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        ValueKind::Number(least, most) => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
            Ok(_) => Err("argument is out of range"),
            Err(_) => Err("argument couldn't be parsed into an integer"),
        },
        ValueKind::Bytes(least) => match parse_bytes(value)? {
            bytes if bytes < least => Err("argument is out of range"),
            bytes => Ok(bytes.to_string()),
        },
        ValueKind::YesNo => match value.to_ascii_lowercase().as_str() {
            word @ ("yes" | "no") => Ok(word.to_owned()),
            _ => Err("argument must be 'yes' or 'no'"),
        },
        ValueKind::Choice(words) => {
            let lower = value.to_ascii_lowercase();
            let known = words.contains(&lower.as_str());
            if known { Ok(lower) } else { Err("argument(s) must be one of the supported values") }
        }
    }
}

/// Parses a number of bytes with a unit.
pub(crate) fn parse_bytes(value: &str) -> Result<usize, &'static str> {
    const WRONG: &str = "argument must be a memory value";
    let word = value.trim().to_ascii_lowercase();
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match word.strip_prefix(digits).unwrap_or_default() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return Err(WRONG),
    };
    digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit)).ok_or(WRONG)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(settings: &Settings, pairs: &[(&str, &str)]) -> Result<Vec<&'static str>, String> {
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.as_bytes(), b.as_bytes())).collect();
        settings.set(&pairs)
    }

    #[test]
    fn several_are_set_together_or_not_at_all() {
        let settings = Settings::new();
        set(&settings, &[("timeout", "7"), ("MAXCLIENTS", "5"), ("appendfsync", "always")])
            .unwrap();
        assert_eq!((settings.idle_limit_s(), settings.max_clients()), (7, 5));
        assert!(settings.durable());
        let refused = set(&settings, &[("timeout", "9"), ("maxclients", "many")]).unwrap_err();
        assert_eq!(
            refused,
            "ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't \
             be parsed into an integer"
        );
        assert_eq!(settings.value("timeout"), "7");
        assert!(set(&settings, &[("port", "1")]).unwrap_err().contains("immutable"));
        assert!(set(&settings, &[("nonsense", "1")]).unwrap_err().contains("Unknown option"));
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("5", 5), ("2kb", 2048), ("1m", 1_000_000), ("1GB", 1 << 30)] {
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
        for text in ["", "x", "1tb", "-1", "99999999999999999999g"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_limit_can_be_so_low_that_nobody_could_set_it_again() {
        let settings = Settings::new();
        for name in ["proto-max-bulk-len", "client-query-buffer-limit"] {
            for too_low in ["0", "1000kb"] {
                assert!(set(&settings, &[(name, too_low)]).unwrap_err().contains("out of range"));
            }
            set(&settings, &[(name, "1mb")]).unwrap();
        }
    }

    #[test]
    fn no_limit_of_output_is_written_as_zero() {
        let settings = Settings::new();
        for (text, limit) in [("2mb", 2 << 20), ("normal 0 0 0", usize::MAX), ("0", usize::MAX)] {
            set(&settings, &[("client-output-buffer-limit", text)]).unwrap();
            assert_eq!(settings.output_limit(), limit, "{text}");
        }
    }

    #[test]
    fn how_writes_are_flushed_can_be_changed_to_anything() {
        let settings = Settings::new();
        for (mode, durable, every_second) in
            [("no", false, false), ("everysec", false, true), ("always", true, false)]
        {
            set(&settings, &[("appendfsync", mode)]).unwrap();
            assert_eq!(settings.durable(), durable, "{mode}");
            assert_eq!(settings.flushes_every_second(), every_second, "{mode}");
        }
    }

    #[test]
    fn passwords_are_compared_whole() {
        let settings = Settings::new();
        set(&settings, &[("requirepass", "secret")]).unwrap();
        assert!(settings.needs_password() && settings.is_password(b"secret"));
        for wrong in ["", "secre", "secrets", "Secret"] {
            assert!(!settings.is_password(wrong.as_bytes()), "{wrong}");
        }
    }
}
