//! `lsmkv watch DIR|ADDRESS`: a view that is redrawn every second.
//!
//! For a directory it shows the tree of tables, the tables added and removed since the last view,
//! and expiry. Another process may have the store open and is not disturbed. For an address, of
//! `lsmkv serve` or of a Redis server, it shows operations per second, latency, clients, memory,
//! and the statistics of the store.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use lsmkv::{Address, Db, Options};

use super::inspect::human_bytes;
use super::tree;
use crate::failure::{Failure, Outcome};
use crate::store::{OptionArgs, explain_open, open_beside};
use crate::transfer::{Interrupt, RedisClient, text_of};

/// Arguments of `watch`.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Directory of a store, or the address of a server: HOST:PORT, redis://…, rediss://…,
    /// unix://…
    #[arg(value_name = "DIR|ADDRESS")]
    target: String,
    /// Seconds between two views
    #[arg(short, long, default_value_t = 1.0)]
    interval: f64,
    /// Number of views; 0: until Ctrl-C
    #[arg(short = 'c', long, default_value_t = 0)]
    count: u64,
    #[command(flatten)]
    options: OptionArgs,
}

/// A store or a server to watch.
trait WatchTarget {
    /// Renders the current view; `seconds` have passed since the last one.
    fn render(&mut self, seconds: f64, colours: bool) -> Result<String, Failure>;
}

pub(crate) fn watch(args: &WatchArgs) -> Outcome {
    let interrupt = Interrupt::catch();
    let interval = Duration::try_from_secs_f64(args.interval.max(0.05))
        .map_err(|_| Failure::usage("--interval: this is no time"))?;
    let options = args.options.to_options()?;
    let mut target = match open_target(&args.target, &options, &interrupt) {
        // Ctrl-C is the normal end, even during a wait.
        Err(_) if interrupt.raised() => return Ok(ExitCode::SUCCESS),
        target => target?,
    };
    let terminal = std::io::stdout().is_terminal();
    let mut last = Instant::now();
    let mut looks = 0;
    while !interrupt.raised() {
        let text = match target.render(last.elapsed().as_secs_f64(), terminal) {
            Err(_) if interrupt.raised() => break,
            text => text?,
        };
        last = Instant::now();
        draw(&text, &args.target, terminal)?;
        looks += 1;
        if looks == args.count {
            break;
        }
        while last.elapsed() < interval && !interrupt.raised() {
            std::thread::sleep(
                interval.saturating_sub(last.elapsed()).min(Duration::from_millis(50)),
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn draw(text: &str, address: &str, terminal: bool) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if terminal {
        // Moves home, clears each line as it is drawn, then everything below: no flicker.
        let lines = text.replace('\n', "\x1b[K\n");
        write!(out, "\x1b[H\x1b[1m{address}\x1b[0m  (Ctrl-C ends)\x1b[K\n\x1b[K\n{lines}\x1b[J")?;
    } else {
        writeln!(out, "{text}")?;
    }
    Ok(out.flush()?)
}

fn open_target(
    address: &str,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<Box<dyn WatchTarget>, Failure> {
    let server = |address: &str| -> Result<Box<dyn WatchTarget>, Failure> {
        let client = RedisClient::connect(&Address::parse(address)?, options, interrupt)?;
        Ok(Box::new(ServerTarget { client, before: None }))
    };
    if Address::is_remote(address) {
        return server(address);
    }
    let is_dir = Path::new(address).is_dir();
    match address.rsplit_once(':') {
        Some((_, port)) if !is_dir && port.parse::<u16>().is_ok() => {
            server(&format!("redis://{address}"))
        }
        Some(_) if !is_dir => {
            Err(Failure::usage(format!("{address} is neither a directory nor HOST:PORT")))
        }
        _ => Ok(Box::new(DirectoryTarget { dir: address.to_owned(), db: None, tables: None })),
    }
}

/// A store's directory.
struct DirectoryTarget {
    dir: String,
    db: Option<Db>,
    /// The tables and their sizes in the last view.
    tables: Option<BTreeMap<String, u64>>,
}

impl DirectoryTarget {
    /// The store as it is now.
    fn open_now(&mut self) -> Result<Db, Failure> {
        let dir = Path::new(&self.dir);
        let db = match self.db.take() {
            Some(db) if db.refresh().is_ok() => db,
            // The first view, or another store in the same directory.
            _ => open_beside(dir, Options::default()).map_err(|error| explain_open(error, dir))?,
        };
        self.db = Some(db.clone());
        Ok(db)
    }
}

impl WatchTarget for DirectoryTarget {
    fn render(&mut self, seconds: f64, colours: bool) -> Result<String, Failure> {
        let db = self.open_now()?;
        let mut text = tree::render(&db, colours)?;
        let tables = db.tables()?.into_iter();
        let tables: BTreeMap<String, u64> =
            tables.map(|table| (table.path.display().to_string(), table.bytes)).collect();
        if let Some(before) = &self.tables {
            let only = |a: &BTreeMap<String, u64>, b: &BTreeMap<String, u64>| {
                let gone = a.iter().filter(|(name, _)| !b.contains_key(*name));
                gone.fold((0u64, 0u64), |sum, (_, bytes)| (sum.0 + 1, sum.1 + bytes))
            };
            let (came, went) = (only(&tables, before), only(before, &tables));
            let _ = writeln!(
                text,
                "\nin {seconds:.1} s: {} tables came ({}), {} went ({})",
                came.0,
                human_bytes(came.1),
                went.0,
                human_bytes(went.1)
            );
        }
        self.tables = Some(tables);
        for stat in db.stats()? {
            if stat.name.contains("expired") || stat.name.contains("keys") {
                let _ = writeln!(text, "{:28} {}", stat.name, stat.value.as_f64());
            }
        }
        Ok(text)
    }
}

/// A server at an address.
struct ServerTarget {
    client: RedisClient,
    before: Option<BTreeMap<String, f64>>,
}

impl ServerTarget {
    /// Every number in INFO, including the calls of each command and their time.
    fn figures(&mut self) -> Result<BTreeMap<String, f64>, Failure> {
        let info = text_of(self.client.call_words(&["INFO", "everything"])?).unwrap_or_default();
        let info = String::from_utf8_lossy(&info);
        let mut figures = BTreeMap::new();
        for (name, value) in info.lines().filter_map(|line| line.trim_end().split_once(':')) {
            match value.parse() {
                Ok(number) => _ = figures.insert(name.to_owned(), number),
                Err(_) => {
                    for (part, number) in value.split(',').filter_map(|it| it.split_once('=')) {
                        if let Ok(number) = number.parse() {
                            figures.insert(format!("{name}.{part}"), number);
                        }
                    }
                }
            }
        }
        Ok(figures)
    }

    /// The median of some round trips, in microseconds.
    fn latency(&mut self) -> Result<f64, Failure> {
        let mut times = Vec::new();
        for _ in 0..9 {
            let begun = Instant::now();
            self.client.call_words(&["PING"])?;
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied().unwrap_or(0.0))
    }
}

impl WatchTarget for ServerTarget {
    fn render(&mut self, seconds: f64, _: bool) -> Result<String, Failure> {
        let latency = self.latency()?;
        let now = self.figures()?;
        let before = self.before.replace(now.clone()).unwrap_or_else(|| now.clone());
        let value = |name: &str| now.get(name).copied().unwrap_or(0.0);
        let rate = |name: &str| {
            let grown = value(name) - before.get(name).copied().unwrap_or(0.0);
            (grown / seconds.max(1e-9)).max(0.0)
        };
        let mut text = String::new();
        line(&mut text, "operations/s", format!("{:.0}", rate("total_commands_processed")));
        line(&mut text, "round trip", format!("{latency:.0} µs"));
        line(&mut text, "clients", value("connected_clients").to_string());
        line(&mut text, "memory", bytes(value("used_memory")));
        line(&mut text, "expired keys/s", format!("{:.0}", rate("expired_keys")));
        commands(&mut text, &now, &before, seconds);
        for name in ["table_files", "table_bytes", "log_bytes", "memtable_bytes"] {
            if let Some(figure) = now.get(name) {
                let sized = name.ends_with("bytes");
                line(&mut text, name, if sized { bytes(*figure) } else { figure.to_string() });
            }
        }
        for name in ["flushes", "merges", "merge_written_bytes", "cleaner_deleted", "stalls"] {
            if now.contains_key(name) {
                line(&mut text, &format!("{name}/s"), format!("{:.1}", rate(name)));
            }
        }
        Ok(text)
    }
}

fn line(text: &mut String, name: &str, figure: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name:22} {figure:>12}");
}

fn bytes(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size")]
    let whole = number.max(0.0) as u64;
    human_bytes(whole)
}

/// The most called commands since the last view, with the time per call.
fn commands(
    text: &mut String,
    now: &BTreeMap<String, f64>,
    before: &BTreeMap<String, f64>,
    seconds: f64,
) {
    let grown = |name: &str| {
        now.get(name).copied().unwrap_or(0.0) - before.get(name).copied().unwrap_or(0.0)
    };
    let mut busy: Vec<(f64, f64, &str)> = now
        .keys()
        .filter_map(|key| key.strip_prefix("cmdstat_")?.strip_suffix(".calls"))
        .map(|name| {
            let calls = grown(&format!("cmdstat_{name}.calls"));
            let time = grown(&format!("cmdstat_{name}.usec"));
            (calls, if calls > 0.0 { time / calls } else { 0.0 }, name)
        })
        .filter(|(calls, _, name)| *calls > 0.0 && !matches!(*name, "info" | "ping"))
        .collect();
    busy.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (calls, each, name) in busy.iter().take(8) {
        let rate = format!("{:.0}/s", calls / seconds.max(1e-9));
        // Not every server measures its commands.
        let each = if *each > 0.0 { format!("{each:.1} µs each") } else { String::new() };
        let _ = writeln!(text, "  {name:20} {rate:>12} {each}");
    }
}
