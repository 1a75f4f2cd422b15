//! A child process: all wanted rows on one peer, once.
//!
//! Three stores, each in a directory of its own: one filled in order; one filled at random, read,
//! read again with a small cache, overwritten, and read while written to; and one a fillsync row.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::event::{Event, Footprint, emit};
use crate::keys::KEY_BYTES;
use crate::measure::process::written_bytes;
use crate::peers::{Job, Kind, Peer, dispatch};
use crate::plan::{Plan, Settings};
use crate::rows::Row;
use crate::scratch;
use crate::values::Values;
use crate::workload::fill::{self, Edition};
use crate::workload::{Timed, mixed, read, scan, synced};

/// What the parent hands to a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) peer: Kind,
    pub(crate) plan: Plan,
    pub(crate) dir: PathBuf,
}

pub(crate) fn command(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task)?;
    run(&task, &mut |event| emit(event))
}

/// Runs a task in this process, showing each measurement to `emit`.
pub(crate) fn run(task: &Task, emit: &mut dyn FnMut(&Event) -> Result<()>) -> Result<()> {
    let plan = &task.plan;
    let values = Values::new(plan.value_bytes, plan.seed);
    dispatch(task.peer, Session { plan, dir: &task.dir, values, emit })
}

struct Session<'a> {
    plan: &'a Plan,
    dir: &'a Path,
    values: Values,
    emit: &'a mut dyn FnMut(&Event) -> Result<()>,
}

impl Job for Session<'_> {
    type Output = ();

    fn run<P: Peer>(mut self) -> Result<()> {
        self.sequential_store::<P>()?;
        self.random_store::<P>()?;
        self.synced_store::<P>(Row::FillsyncThreads1, 1)?;
        self.synced_store::<P>(Row::FillsyncThreads8, 8)
    }
}

/// Rows that need the store filled at random.
const ON_RANDOM_STORE: [Row; 10] = [
    Row::Fillrandom,
    Row::Overwrite,
    Row::Readrandom,
    Row::Readmiss,
    Row::Readseq,
    Row::Seekrandom,
    Row::ReadrandomThreads2,
    Row::MixedReads,
    Row::MixedWrites,
    Row::ReadrandomCache10,
];

impl Session<'_> {
    fn sequential_store<P: Peer>(&mut self) -> Result<()> {
        if !self.plan.wants(Row::Fillseq) {
            return Ok(());
        }
        let dir = self.fresh_dir("sequential")?;
        let peer = self.open::<P>(&dir, &self.plan.settings)?;
        let timed = fill::sequential(&peer, self.plan, &self.values)?;
        self.rate(Row::Fillseq, timed)?;
        fill::verify(&peer, self.plan, &self.values, Edition::First)?;
        peer.close()?;
        Ok(fs::remove_dir_all(dir)?)
    }

    fn random_store<P: Peer>(&mut self) -> Result<()> {
        if !self.plan.wants_any(&ON_RANDOM_STORE) {
            return Ok(());
        }
        let dir = self.fresh_dir("random")?;
        let settings = &self.plan.settings;
        let peer = self.open::<P>(&dir, settings)?;
        self.fill_at_random(&peer, &dir)?;
        self.read_rows(&peer)?;
        peer.close()?;

        let small = Settings { cache: self.plan.user_bytes() / 10, ..settings.clone() };
        let peer = self.open::<P>(&dir, &small)?;
        self.measure(Row::ReadrandomCache10, |plan, _| read::hits(&peer, plan, 1))?;
        peer.close()?;

        let peer = self.open::<P>(&dir, settings)?;
        self.overwrite_rows(&peer)?;
        peer.close()?;
        Ok(fs::remove_dir_all(dir)?)
    }

    fn fill_at_random<P: Peer>(&mut self, peer: &P, dir: &Path) -> Result<()> {
        let before = written_bytes();
        let (timed, latency) = fill::random(peer, self.plan, &self.values, Edition::First)?;
        self.rate(Row::Fillrandom, timed)?;
        peer.settle()?;
        let written = written_bytes().zip(before).map(|(after, before)| after - before);
        // A kernel that keeps no count says 0 for a store that was certainly written.
        let written = written.filter(|bytes| *bytes > 0);
        fill::verify(peer, self.plan, &self.values, Edition::First)?;
        if self.plan.wants(Row::Fillrandom) {
            let user_bytes = self.plan.user_bytes() as f64;
            (self.emit)(&Event::Latency(latency))?;
            (self.emit)(&Event::Footprint(Footprint {
                disk_bytes: scratch::disk_bytes(dir)?,
                write_amplification: written.map(|bytes| bytes as f64 / user_bytes),
            }))?;
        }
        scratch::write_back(dir)
    }

    fn read_rows<P: Peer>(&mut self, peer: &P) -> Result<()> {
        self.measure(Row::Readrandom, |plan, _| read::hits(peer, plan, 1))?;
        self.measure(Row::Readmiss, |plan, _| read::misses(peer, plan))?;
        self.measure(Row::Readseq, |plan, _| scan::sequential(peer, plan))?;
        self.measure(Row::Seekrandom, |plan, _| scan::ranges(peer, plan))?;
        self.measure(Row::ReadrandomThreads2, |plan, _| read::hits(peer, plan, 2))
    }

    fn overwrite_rows<P: Peer>(&mut self, peer: &P) -> Result<()> {
        self.measure(Row::Overwrite, |plan, values| {
            let (timed, _) = fill::random(peer, plan, values, Edition::Second)?;
            fill::verify(peer, plan, values, Edition::Second)?;
            Ok(timed)
        })?;
        if !self.plan.wants_any(&[Row::MixedReads, Row::MixedWrites]) {
            return Ok(());
        }
        peer.settle()?;
        let (reads, writes) = mixed::read_while_writing(peer, self.plan, &self.values)?;
        self.rate(Row::MixedReads, reads)?;
        self.rate(Row::MixedWrites, writes)
    }

    fn synced_store<P: Peer>(&mut self, row: Row, threads: u64) -> Result<()> {
        if !self.plan.wants(row) {
            return Ok(());
        }
        let dir = self.fresh_dir("synced")?;
        let settings = Settings { synced: true, ..self.plan.settings.clone() };
        let peer = self.open::<P>(&dir, &settings)?;
        let timed = synced::fill(&peer, self.plan, &self.values, threads)?;
        self.rate(row, timed)?;
        peer.close()?;
        Ok(fs::remove_dir_all(dir)?)
    }

    /// Runs a row if it is wanted.
    fn measure(
        &mut self,
        row: Row,
        work: impl FnOnce(&Plan, &Values) -> Result<Timed>,
    ) -> Result<()> {
        if !self.plan.wants(row) {
            return Ok(());
        }
        let timed = work(self.plan, &self.values)?;
        self.rate(row, timed)
    }

    fn rate(&mut self, row: Row, Timed { ops, seconds }: Timed) -> Result<()> {
        if !self.plan.wants(row) {
            return Ok(());
        }
        (self.emit)(&Event::Rate { row, ops, seconds })
    }

    fn open<P: Peer>(&self, dir: &Path, settings: &Settings) -> Result<P> {
        let entries = self.plan.num.max(self.plan.sync_num);
        let bytes = entries.saturating_mul((KEY_BYTES + self.plan.value_bytes) as u64);
        P::open(dir, settings, bytes)
    }

    fn fresh_dir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(name);
        fs::create_dir(&dir)?;
        scratch::write_back(&dir)?;
        Ok(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Compression;

    fn small_plan(rows: Vec<Row>) -> Plan {
        Plan {
            num: 2000,
            value_bytes: 100,
            reads: 2000,
            seeks: 50,
            scan_length: 100,
            sync_num: 16,
            mixed_seconds: 0.05,
            seed: 1,
            rows,
            settings: Settings {
                write_buffer: 1 << 20,
                cache: 1 << 20,
                memory_budget: None,
                bloom_bits: 10,
                background_jobs: 2,
                compression: Compression::None,
                synced: false,
            },
        }
    }

    fn events_of(peer: Kind, rows: Vec<Row>) -> Vec<Event> {
        let scratch = scratch::create(None).unwrap();
        let task = Task { peer, plan: small_plan(rows), dir: scratch.path().to_owned() };
        let mut events = Vec::new();
        run(&task, &mut |event| {
            events.push(*event);
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "stores are removed");
        events
    }

    fn rated(events: &[Event]) -> Vec<Row> {
        let mut rows: Vec<Row> = events
            .iter()
            .filter_map(|event| match event {
                Event::Rate { row, ops, seconds } => {
                    assert!(*ops > 0 && *seconds > 0.0, "{event:?}");
                    Some(*row)
                }
                _ => None,
            })
            .collect();
        rows.sort();
        rows
    }

    #[test]
    fn a_session_measures_every_row_on_every_peer_of_the_build() {
        for peer in Kind::ALL.into_iter().filter(|peer| peer.absence().is_none()) {
            let events = events_of(peer, Row::all().collect());
            assert!(rated(&events).into_iter().eq(Row::all()), "{peer:?}: {events:?}");
            assert!(events.iter().any(|event| matches!(event, Event::Latency(_))));
            assert!(events.iter().any(|event| matches!(event, Event::Footprint(_))));
        }
    }

    #[test]
    fn a_session_measures_only_what_is_wanted() {
        let events = events_of(Kind::Lmdb, vec![Row::Readseq]);
        assert_eq!(rated(&events), [Row::Readseq]);
        assert_eq!(events.len(), 1);
    }
}
