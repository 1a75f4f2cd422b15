//! Medians, ratios and verdicts of a run: everything the reports show, and nothing of the machine
//! it ran on.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::{Footprint, Latency};
use crate::measure::median::median;
use crate::peers::Kind;
use crate::plan::Plan;
use crate::rows::{FIRST_LONGEST_PAUSE_MS, FIRST_WRITE_AMPLIFICATION, Row, Verdict};
use crate::runner::Samples;

#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) plan: Plan,
    pub(crate) repeats: u32,
    pub(crate) peers: Vec<PeerInfo>,
    pub(crate) rows: Vec<RowSummary>,
    pub(crate) fillrandom: BTreeMap<Kind, FillSummary>,
    pub(crate) limits: Vec<Limit>,
    /// Not written to files: messages may name paths of this machine.
    #[serde(skip)]
    pub(crate) failures: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct PeerInfo<K = Kind> {
    pub(crate) peer: K,
    pub(crate) version: String,
    /// Why it was not measured, if it was not.
    pub(crate) absence: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RowSummary {
    pub(crate) row: Row,
    /// Operations per second.
    pub(crate) rates: BTreeMap<Kind, Spread>,
    /// lsmkv's median to RocksDB's.
    pub(crate) to_rocksdb: Option<f64>,
    /// lsmkv's median to the best of the others.
    pub(crate) to_best: Option<f64>,
    pub(crate) best_peer: Option<Kind>,
    pub(crate) first: f64,
    pub(crate) verdict: Option<Verdict>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Medians of what fillrandom costs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct FillSummary {
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) p999_us: Option<f64>,
    pub(crate) longest_pause_ms: Option<f64>,
    pub(crate) disk_bytes: Option<f64>,
    pub(crate) write_amplification: Option<f64>,
}

/// A figure of lsmkv that must not exceed a limit.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    pub(crate) title: &'static str,
    pub(crate) figure: f64,
    pub(crate) first: f64,
    pub(crate) verdict: Verdict,
}

impl Summary {
    pub(crate) fn new(plan: &Plan, repeats: u32, samples: &BTreeMap<Kind, Samples>) -> Self {
        let fillrandom: BTreeMap<_, _> = samples
            .iter()
            .filter(|(_, of_peer)| !of_peer.latencies.is_empty())
            .map(|(kind, of_peer)| (*kind, FillSummary::new(of_peer)))
            .collect();
        Self {
            plan: plan.clone(),
            repeats,
            peers: Kind::ALL
                .map(|kind| {
                    let measured = samples.contains_key(&kind);
                    PeerInfo::new(kind, kind.version(), measured, kind.absence())
                })
                .into(),
            rows: plan.rows.iter().map(|row| RowSummary::new(*row, samples)).collect(),
            limits: limits(fillrandom.get(&Kind::Lsmkv)),
            fillrandom,
            failures: failures(samples, Kind::title),
        }
    }
}

impl<K> PeerInfo<K> {
    /// `absence` says why the build or the machine lacks the peer, if it does.
    pub(crate) fn new(peer: K, version: String, measured: bool, absence: Option<&str>) -> Self {
        let absence = (!measured).then(|| absence.unwrap_or("not asked for").to_owned());
        Self { peer, version, absence }
    }
}

impl RowSummary {
    pub(crate) fn new(row: Row, samples: &BTreeMap<Kind, Samples>) -> Self {
        let rates: BTreeMap<Kind, Spread> = samples
            .iter()
            .filter_map(|(kind, of_peer)| Some((*kind, Spread::of(of_peer.rates.get(&row)?)?)))
            .collect();
        let rate = |kind| rates.get(&kind).map(|spread| spread.median);
        let best = rates
            .iter()
            .filter(|(kind, _)| **kind != Kind::Lsmkv)
            .max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        let to_rocksdb = ratio(rate(Kind::Lsmkv), rate(Kind::Rocksdb));
        Self {
            row,
            to_rocksdb,
            to_best: ratio(rate(Kind::Lsmkv), best.map(|(_, spread)| spread.median)),
            best_peer: best.map(|(kind, _)| *kind),
            first: row.first(),
            verdict: to_rocksdb.map(|ratio| Verdict::of_ratio(ratio, row.first())),
            rates,
        }
    }

    /// A peer's median to RocksDB's.
    pub(crate) fn relative(&self, kind: Kind) -> Option<f64> {
        let rate = |kind| self.rates.get(&kind).map(|spread| spread.median);
        ratio(rate(kind), rate(Kind::Rocksdb))
    }
}

impl Spread {
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        Some(Self {
            median: median(samples)?,
            min: samples.iter().copied().fold(f64::INFINITY, f64::min),
            max: samples.iter().copied().fold(0.0, f64::max),
        })
    }
}

impl FillSummary {
    fn new(samples: &Samples) -> Self {
        let latency = |part: fn(&Latency) -> f64| {
            median(&samples.latencies.iter().map(part).collect::<Vec<_>>())
        };
        let footprint = |part: fn(&Footprint) -> Option<f64>| {
            median(&samples.footprints.iter().filter_map(part).collect::<Vec<_>>())
        };
        Self {
            p50_us: latency(|l| l.p50_us),
            p99_us: latency(|l| l.p99_us),
            p999_us: latency(|l| l.p999_us),
            longest_pause_ms: latency(|l| l.longest_pause_ms),
            disk_bytes: footprint(|f| Some(f.disk_bytes as f64)),
            write_amplification: footprint(|f| f.write_amplification),
        }
    }
}

fn limits(lsmkv: Option<&FillSummary>) -> Vec<Limit> {
    let Some(lsmkv) = lsmkv else { return Vec::new() };
    let figures = [
        ("longest pause, ms", lsmkv.longest_pause_ms, FIRST_LONGEST_PAUSE_MS),
        ("write amplification", lsmkv.write_amplification, FIRST_WRITE_AMPLIFICATION),
    ];
    let limits = figures.into_iter().filter_map(|(title, figure, first)| {
        let figure = figure?;
        Some(Limit { title, figure, first, verdict: Verdict::of_limit(figure, first) })
    });
    limits.collect()
}

/// What did not finish, by peer.
pub(crate) fn failures<K: Copy, R>(
    samples: &BTreeMap<K, Samples<R>>,
    title: fn(K) -> &'static str,
) -> Vec<String> {
    let each = samples.iter().flat_map(|(kind, of_peer)| {
        of_peer.failures.iter().map(move |failure| format!("{}, {failure}", title(*kind)))
    });
    each.collect()
}

pub(crate) fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    part.zip(whole).filter(|(_, whole)| *whole > 0.0).map(|(part, whole)| part / whole)
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;
    use crate::event::Event;

    /// Three repeats of two rows: lsmkv twice RocksDB in fillseq, half of it in readrandom.
    pub(crate) fn example() -> Summary {
        let args = Args::parse_from(["bench", "--rows", "fillseq,fillrandom,readrandom"]);
        let mut samples: BTreeMap<Kind, Samples> = BTreeMap::new();
        for (kind, fillseq, readrandom) in [
            (Kind::Lsmkv, [800, 200_000, 190_000], [50_000; 3]),
            (Kind::Rocksdb, [95_000, 95_000, 700_000], [100_000; 3]),
            (Kind::Lmdb, [50_000; 3], [250_000; 3]),
        ] {
            let of_peer = samples.entry(kind).or_default();
            for (row, rates) in [(Row::Fillseq, fillseq), (Row::Readrandom, readrandom)] {
                for ops in rates {
                    of_peer.add(Event::Rate { row, ops, seconds: 1.0 });
                }
            }
            of_peer.add(Event::Latency(Latency {
                p50_us: 3.0,
                p99_us: 12.5,
                p999_us: 80.0,
                longest_pause_ms: 6.0,
            }));
            of_peer.add(Event::Footprint(Footprint {
                disk_bytes: 10 << 20,
                write_amplification: Some(3.0),
            }));
        }
        samples.entry(Kind::Lmdb).or_default().failures.push("repeat 3: it fell over".to_owned());
        Summary::new(&args.compare.plan(), 3, &samples)
    }

    #[test]
    fn ratios_are_of_medians_and_the_best_is_the_best_of_the_others() {
        let summary = example();
        let fillseq = &summary.rows[0];
        assert_eq!(fillseq.to_rocksdb, Some(2.0));
        assert_eq!(fillseq.to_best, Some(2.0));
        assert_eq!(fillseq.best_peer, Some(Kind::Rocksdb));
        assert_eq!(fillseq.verdict, Some(Verdict::Met));
        let readrandom = &summary.rows[2];
        assert_eq!(readrandom.to_rocksdb, Some(0.5));
        assert_eq!(readrandom.to_best, Some(0.2));
        assert_eq!(readrandom.best_peer, Some(Kind::Lmdb));
        assert_eq!(readrandom.verdict, Some(Verdict::Missed));
        assert_eq!(readrandom.relative(Kind::Lmdb), Some(2.5));
    }

    #[test]
    fn a_row_without_rocksdb_or_lsmkv_has_no_verdict() {
        let summary = example();
        let fillrandom = &summary.rows[1];
        assert!(fillrandom.rates.is_empty());
        assert_eq!((fillrandom.to_rocksdb, fillrandom.verdict), (None, None));
    }

    #[test]
    fn the_spread_keeps_the_extremes_beside_the_median() {
        let spread = example().rows[0].rates[&Kind::Lsmkv];
        assert_eq!(spread, Spread { median: 190_000.0, min: 800.0, max: 200_000.0 });
    }

    #[test]
    fn limits_apply_to_lsmkv_alone() {
        let verdicts: Vec<_> = example().limits.iter().map(|limit| limit.verdict).collect();
        assert_eq!(verdicts, [Verdict::Missed, Verdict::Met]);
    }

    #[test]
    fn an_unmeasured_peer_says_why() {
        let summary = example();
        let absent: Vec<Kind> =
            summary.peers.iter().filter(|p| p.absence.is_some()).map(|p| p.peer).collect();
        assert_eq!(absent, [Kind::Fjall]);
    }
}
