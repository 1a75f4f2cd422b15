//! What a child tells its parent: one measurement per line, as JSON on standard output.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::rows::Row;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<R = Row> {
    /// Throughput of a row.
    Rate { row: R, ops: u64, seconds: f64 },
    /// Latency of single writes in fillrandom.
    Latency(Latency),
    /// The settled store after fillrandom.
    Footprint(Footprint),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) longest_pause_ms: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Footprint {
    pub(crate) disk_bytes: u64,
    /// Bytes sent to the device per user byte, where the kernel counts them.
    pub(crate) write_amplification: Option<f64>,
}

/// Prints an event for the parent.
pub(crate) fn emit<R: Serialize>(event: &Event<R>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, event)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_the_way_through_json() {
        let events: [Event; 3] = [
            Event::Rate { row: Row::Readseq, ops: 10, seconds: 0.5 },
            Event::Latency(Latency {
                p50_us: 1.0,
                p99_us: 2.5,
                p999_us: 9.0,
                longest_pause_ms: 4.0,
            }),
            Event::Footprint(Footprint { disk_bytes: 7, write_amplification: None }),
        ];
        for event in events {
            let line = serde_json::to_string(&event).unwrap();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
    }
}
