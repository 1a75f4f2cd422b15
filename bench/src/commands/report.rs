//! Medians, ratios and verdicts of commands, and the table that shows them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Placed;
use super::peers::Kind;
use super::placement::Placement;
use super::plan::Plan;
use super::rows::{DEL_LIMIT_US, Goals, Row};
use super::work::{Data, ENTRY_BYTES, STRING_BYTES};
use crate::report::summary::{PeerInfo, Spread, failures, ratio};
use crate::report::table::{align, cell, figure, peers_and_failures, times};
use crate::rows::{TIE, Verdict};
use crate::runner::Samples;

#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    plan: Plan,
    repeats: u32,
    peers: Vec<PeerInfo<Kind>>,
    rows: Vec<RowSummary>,
    /// Not written to files: messages may name paths of this machine.
    #[serde(skip)]
    pub(crate) failures: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RowSummary {
    row: Row,
    /// Commands per second; of a server at its better placement.
    rates: BTreeMap<Kind, Spread>,
    /// Which placement that is.
    placements: BTreeMap<Kind, Placement>,
    /// Commands per second of a server at every placement.
    placed_rates: BTreeMap<Kind, BTreeMap<Placement, Spread>>,
    /// lsmkv's median to each peer's.
    ratios: BTreeMap<Kind, f64>,
    goals: Option<Goals>,
    /// On the ratios that have a goal.
    verdicts: BTreeMap<Kind, Verdict>,
    /// The latency, for a row with a limit on it.
    latency: Option<Latency>,
}

#[derive(Debug, Serialize)]
struct Latency {
    microseconds: f64,
    limit: f64,
    verdict: Verdict,
}

impl Summary {
    pub(crate) fn new(plan: &Plan, repeats: u32, samples: &BTreeMap<Placed, Samples<Row>>) -> Self {
        let peers = Kind::ALL.map(|kind| {
            let measured = samples.keys().any(|(measured, _)| *measured == kind);
            PeerInfo::new(kind, kind.version(), measured, kind.absence())
        });
        Self {
            plan: plan.clone(),
            repeats,
            peers: peers.into(),
            rows: plan.rows.iter().map(|row| RowSummary::new(*row, samples)).collect(),
            failures: failures(samples, |(kind, _)| kind.title()),
        }
    }
}

impl RowSummary {
    fn new(row: Row, samples: &BTreeMap<Placed, Samples<Row>>) -> Self {
        let mut rates: BTreeMap<Kind, Spread> = BTreeMap::new();
        let mut placements = BTreeMap::new();
        let mut placed_rates: BTreeMap<Kind, BTreeMap<Placement, Spread>> = BTreeMap::new();
        for ((kind, placement), of_peer) in samples {
            let Some(spread) = of_peer.rates.get(&row).and_then(|rates| Spread::of(rates)) else {
                continue;
            };
            let best = rates.entry(*kind).or_insert(spread);
            let is_best = spread.median >= best.median;
            if is_best {
                *best = spread;
            }
            if let Some(placement) = placement {
                placed_rates.entry(*kind).or_default().insert(*placement, spread);
                if is_best {
                    placements.insert(*kind, *placement);
                }
            }
        }
        let rate = |kind| rates.get(&kind).map(|spread| spread.median);
        let others = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Lsmkv);
        let ratios: BTreeMap<Kind, f64> =
            others.filter_map(|kind| Some((kind, ratio(rate(Kind::Lsmkv), rate(kind))?))).collect();
        let goals = row.goals();
        let verdicts = ratios
            .iter()
            .filter_map(|(kind, ratio)| {
                Some((*kind, Verdict::of_ratio(*ratio, goal(goals?, *kind)?)))
            })
            .collect();
        let latency = rate(Kind::Lsmkv).filter(|_| row == Row::DelBig).map(Latency::of_deletes);
        Self { row, rates, placements, placed_rates, ratios, goals, verdicts, latency }
    }
}

impl Latency {
    fn of_deletes(rate: f64) -> Self {
        let (microseconds, limit) = (1e6 / rate, DEL_LIMIT_US);
        Self { microseconds, limit, verdict: Verdict::of_limit(microseconds, limit) }
    }
}

fn goal(goals: Goals, kind: Kind) -> Option<f64> {
    match kind {
        Kind::RocksdbTypes => Some(goals.rocksdb_types),
        Kind::RedisPipelined => Some(goals.redis_pipelined),
        Kind::Lsmkv | Kind::Redis => None,
    }
}

pub(crate) fn render(summary: &Summary) -> String {
    format!("\n{}\n{}", rates(summary), legend(summary))
}

fn rates(summary: &Summary) -> String {
    let titles =
        ["/RocksDB-types", "goal", "", "/Redis", "placed", "/Redis-x16", "goal", "", "placed"];
    let peers = Kind::ALL.map(Kind::title);
    let header = ["thousand/s"].iter().chain(&peers).chain(&titles);
    let mut lines = vec![header.map(|title| (*title).to_owned()).collect::<Vec<_>>()];
    for row in &summary.rows {
        let mut line = vec![row.row.title().to_owned()];
        line.extend(
            Kind::ALL
                .map(|kind| cell(row.rates.get(&kind).map(|spread| figure(spread.median / 1e3)))),
        );
        line.extend(compared(row, Kind::RocksdbTypes));
        line.push(cell(row.ratios.get(&Kind::Redis).copied().map(times)));
        line.push(placed(row, Kind::Redis));
        line.extend(compared(row, Kind::RedisPipelined));
        line.push(placed(row, Kind::RedisPipelined));
        lines.push(line);
    }
    align(&lines)
}

/// Ratio, goal and verdict.
fn compared(row: &RowSummary, kind: Kind) -> [String; 3] {
    [
        cell(row.ratios.get(&kind).copied().map(times)),
        cell(row.goals.and_then(|goals| goal(goals, kind)).map(|goal| format!("{goal}x"))),
        cell(row.verdicts.get(&kind).map(|verdict| verdict.word().to_owned())),
    ]
}

fn placed(row: &RowSummary, kind: Kind) -> String {
    cell(row.placements.get(&kind).map(|placement| placement.word().to_owned()))
}

fn legend(summary: &Summary) -> String {
    let plan = &summary.plan;
    let settings = &plan.settings;
    let mut text = String::new();
    for latency in summary.rows.iter().filter_map(|row| row.latency.as_ref()) {
        let Latency { microseconds, limit, verdict } = latency;
        let (took, fields) = (figure(*microseconds), Data::deleted_fields(plan.num));
        text += &format!(
            "DEL of a hash of {fields} fields: {took} us, at most {limit}: {}\n",
            verdict.word()
        );
    }
    text += &format!(
        "{} keys, members of each large collection and small hashes; strings of {STRING_BYTES} B, \
         values of fields and elements\nof {ENTRY_BYTES} B; median of {} interleaved repeats, a \
         process each; a row ends after {} s.\n\
         {} MiB write buffer, {} MiB cache, {} filter bits, {} background jobs, log on, \
         compression off.\n\
         Rows of new entries fill the store; the others follow a full compaction and a warm-up \
         of a tenth.\n\
         lsmkv: in process, log flushed every second. RocksDB-types: lsmkv's encoding on RocksDB \
         in process, log never flushed,\n\
         write buffer per column family, no locks, no SPOP. Redis: unix socket, one connection, \
         append-only file flushed every second,\n\
         one command at a time and (x16) 16 at once; server and client on one core (together) and on \
         two (apart), the better\ncounts, row by row.\n\
         Verdict: met from the goal on, tie from {TIE} of it.\n",
        plan.num,
        summary.repeats,
        plan.row_seconds,
        settings.write_buffer >> 20,
        settings.cache >> 20,
        settings.bloom_bits,
        settings.background_jobs,
    );
    text + &peers_and_failures(&summary.peers, Kind::title, &summary.failures)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};
    use crate::event::Event;

    /// lsmkv four times RocksDB-types and level with pipelined Redis in SET, and a slow DEL; no
    /// Redis that takes one command at a time.
    fn example() -> Summary {
        let args = Args::parse_from(["bench", "commands", "--rows", "set,get,del-big"]);
        let Some(Command::Commands(args)) = args.command else { panic!("{args:?}") };
        let mut samples: BTreeMap<Placed, Samples<Row>> = BTreeMap::new();
        for (kind, placement, rates) in [
            (Kind::Lsmkv, None, [800, 400_000, 500_000]),
            (Kind::RocksdbTypes, None, [100_000; 3]),
            (Kind::RedisPipelined, Some(Placement::Together), [300_000; 3]),
            (Kind::RedisPipelined, Some(Placement::Apart), [400_000; 3]),
        ] {
            let of_peer = samples.entry((kind, placement)).or_default();
            for ops in rates {
                of_peer.add(Event::Rate { row: Row::Set, ops, seconds: 1.0 });
            }
        }
        let lsmkv = samples.entry((Kind::Lsmkv, None)).or_default();
        lsmkv.add(Event::Rate { row: Row::DelBig, ops: 1, seconds: 12.5e-6 });
        lsmkv.failures.push("repeat 3: it fell over".to_owned());
        Summary::new(&args.plan(), 3, &samples)
    }

    #[test]
    fn the_table_shows_rates_ratios_goals_verdicts_and_failures() {
        let text = render(&example());
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("SET"), "SET 400 100 - 400 4.00x 4x met - - 1.00x 2x missed apart");
        assert_eq!(line("GET"), "GET - - - - - 4x - - - - 2x - -");
        assert!(line("DEL of a hash").ends_with("fields: 12.5 us, at most 10: missed"));
        assert!(line("Redis ").contains("no figures"));
        assert_eq!(line("FAILED"), "FAILED: lsmkv, repeat 3: it fell over");
    }

    #[test]
    fn json_holds_ratios_and_verdicts_by_peer_but_no_failure_messages() {
        let text = crate::report::json::render(&example()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let set = &json["rows"][0];
        assert_eq!(set["row"], "set");
        assert_eq!(set["rates"]["rocksdb-types"]["median"], 100_000.0);
        assert_eq!(set["ratios"]["redis-pipelined"], 1.0);
        assert_eq!(set["verdicts"]["rocksdb-types"], "met");
        assert_eq!(set["placements"]["redis-pipelined"], "apart");
        assert_eq!(set["placed_rates"]["redis-pipelined"]["together"]["median"], 300_000.0);
        assert_eq!(json["rows"][2]["latency"]["verdict"], "missed");
        assert!(!text.contains("fell over"));
    }
}
