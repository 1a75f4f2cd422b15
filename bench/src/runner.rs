//! The parent: starts a child per peer and repeat, in turn, and collects what they print.
//!
//! Repeats are interleaved (every peer once, then every peer again), so that a machine that slows
//! down or speeds up meanwhile does so for all.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::args::Compare;
use crate::event::{Event, Footprint, Latency};
use crate::peers::Kind;
use crate::plan::Plan;
use crate::rows::Row;
use crate::scratch;
use crate::session::Task;

/// What one peer measured, over all its repeats.
#[derive(Debug)]
pub(crate) struct Samples<R = Row> {
    /// Operations per second.
    pub(crate) rates: BTreeMap<R, Vec<f64>>,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) footprints: Vec<Footprint>,
    /// Repeats that did not finish; their figures up to then count.
    pub(crate) failures: Vec<String>,
}

impl<R> Default for Samples<R> {
    fn default() -> Self {
        Self {
            rates: BTreeMap::new(),
            latencies: Vec::new(),
            footprints: Vec::new(),
            failures: Vec::new(),
        }
    }
}

impl<R: Ord> Samples<R> {
    pub(crate) fn add(&mut self, event: Event<R>) {
        match event {
            Event::Rate { row, ops, seconds } => {
                self.rates.entry(row).or_default().push(ops as f64 / seconds);
            }
            Event::Latency(latency) => self.latencies.push(latency),
            Event::Footprint(footprint) => self.footprints.push(footprint),
        }
    }
}

/// Runs every wanted peer of this build, as often as asked.
pub(crate) fn run(args: &Compare, plan: &Plan) -> Result<BTreeMap<Kind, Samples>> {
    let present = args.wanted_peers().into_iter().filter(|kind| kind.absence().is_none());
    let peers: Vec<_> = present.map(|kind| (kind, kind.title())).collect();
    interleaved(args.dir.as_deref(), args.repeats, &peers, |peer, dir, samples| {
        in_child("child", &Task { peer, plan: plan.clone(), dir: dir.to_owned() }, samples)
    })
}

/// Every peer once, then every peer again, each time in a fresh directory. Peers come with their
/// titles.
pub(crate) fn interleaved<K: Copy + Ord, R>(
    base: Option<&Path>,
    repeats: u32,
    peers: &[(K, &str)],
    measure: impl Fn(K, &Path, &mut Samples<R>) -> Result<()>,
) -> Result<BTreeMap<K, Samples<R>>> {
    let scratch = scratch::create(base)?;
    let mut all = BTreeMap::new();
    for repeat in 1..=repeats {
        for (kind, title) in peers {
            let samples: &mut Samples<R> = all.entry(*kind).or_default();
            let start = Instant::now();
            let dir = scratch.path().join(format!("{title}-{repeat}"));
            fs::create_dir(&dir)?;
            if let Err(error) = measure(*kind, &dir, samples) {
                samples.failures.push(format!("repeat {repeat}: {error}"));
            }
            // Also after a failure, so that every peer finds the disk in the same state.
            fs::remove_dir_all(dir)?;
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("repeat {repeat}/{repeats}: {title:<8} {seconds:.0} s");
        }
    }
    Ok(all)
}

/// Starts this program with a subcommand and its task, and collects what it measured.
pub(crate) fn in_child<R: Ord + DeserializeOwned>(
    subcommand: &str,
    task: &impl Serialize,
    samples: &mut Samples<R>,
) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(subcommand)
        .arg(serde_json::to_string(task)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("a child without output")?;
    let read = read_events(BufReader::new(output), samples);
    let status = child.wait()?;
    read?;
    if status.success() { Ok(()) } else { Err(format!("the child ended with {status}").into()) }
}

fn read_events<R: Ord + DeserializeOwned>(
    output: impl BufRead,
    samples: &mut Samples<R>,
) -> Result<()> {
    for line in output.lines() {
        samples.add(serde_json::from_str(&line?)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_child_become_samples() {
        let lines = concat!(
            r#"{"event":"rate","row":"fillseq","ops":100,"seconds":0.5}"#,
            "\n",
            r#"{"event":"rate","row":"fillseq","ops":100,"seconds":0.25}"#,
            "\n",
            r#"{"event":"footprint","disk_bytes":5,"write_amplification":1.5}"#,
            "\n",
        );
        let mut samples: Samples = Samples::default();
        read_events(lines.as_bytes(), &mut samples).unwrap();
        assert_eq!(samples.rates[&Row::Fillseq], [200.0, 400.0]);
        assert_eq!(samples.footprints.len(), 1);
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error() {
        let mut samples: Samples = Samples::default();
        assert!(read_events(&b"hello\n"[..], &mut samples).is_err());
    }
}
