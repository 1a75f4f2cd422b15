//! The parent: starts a child per peer and repeat, in turn, and gathers what they print.
//!
//! Repeats are interleaved (every peer once, then every peer again), so that a machine that slows
//! down or speeds up meanwhile does so for all.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Result;
use crate::args::Compare;
use crate::event::{Event, Footprint, Latency};
use crate::peers::Kind;
use crate::plan::Plan;
use crate::rows::Row;
use crate::scratch;
use crate::session::Task;

/// What one peer measured, over all its repeats.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// Operations a second.
    pub(crate) rates: BTreeMap<Row, Vec<f64>>,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) footprints: Vec<Footprint>,
    /// Repeats that did not finish; their figures up to then count.
    pub(crate) failures: Vec<String>,
}

impl Samples {
    pub(crate) fn add(&mut self, event: Event) {
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
    let scratch = scratch::create(args.dir.as_deref())?;
    let mut all = BTreeMap::new();
    for kind in args.wanted_peers().into_iter().filter(|kind| kind.absence().is_none()) {
        all.insert(kind, Samples::default());
    }
    for repeat in 1..=args.repeats {
        for (kind, samples) in &mut all {
            let start = Instant::now();
            let dir = scratch.path().join(format!("{}-{repeat}", kind.title()));
            if let Err(error) = run_child(*kind, plan, &dir, samples) {
                samples.failures.push(format!("repeat {repeat}: {error}"));
            }
            let seconds = start.elapsed().as_secs_f64();
            eprintln!("repeat {repeat}/{}: {:<8} {seconds:.0} s", args.repeats, kind.title());
        }
    }
    Ok(all)
}

fn run_child(kind: Kind, plan: &Plan, dir: &Path, samples: &mut Samples) -> Result<()> {
    fs::create_dir(dir)?;
    let outcome = measure_in_child(kind, plan, dir, samples);
    // Also after a failure: the next peer shall find the disk as this one did.
    fs::remove_dir_all(dir)?;
    outcome
}

fn measure_in_child(kind: Kind, plan: &Plan, dir: &Path, samples: &mut Samples) -> Result<()> {
    let task = Task { peer: kind, plan: plan.clone(), dir: dir.to_owned() };
    let mut child = Command::new(std::env::current_exe()?)
        .arg("child")
        .arg(serde_json::to_string(&task)?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().ok_or("a child without output")?;
    let read = read_events(BufReader::new(output), samples);
    let status = child.wait()?;
    read?;
    if status.success() { Ok(()) } else { Err(format!("the child ended with {status}").into()) }
}

fn read_events(output: impl BufRead, samples: &mut Samples) -> Result<()> {
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
        let mut samples = Samples::default();
        read_events(lines.as_bytes(), &mut samples).unwrap();
        assert_eq!(samples.rates[&Row::Fillseq], [200.0, 400.0]);
        assert_eq!(samples.footprints.len(), 1);
    }

    #[test]
    fn a_line_that_is_no_event_is_an_error() {
        assert!(read_events(&b"hello\n"[..], &mut Samples::default()).is_err());
    }
}
