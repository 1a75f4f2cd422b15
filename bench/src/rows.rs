//! The rows of the table and their first targets.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    Fillseq,
    Fillrandom,
    Overwrite,
    Readrandom,
    Readmiss,
    Readseq,
    Seekrandom,
    ReadrandomThreads2,
    MixedReads,
    MixedWrites,
    ReadrandomCache10,
    FillsyncThreads1,
    FillsyncThreads8,
}

impl Row {
    /// Every row, in the order of the table.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// How the table names it.
    pub(crate) fn title(self) -> &'static str {
        self.spec().0
    }

    /// The throughput asked for first, as a multiple of RocksDB's.
    pub(crate) fn first(self) -> f64 {
        self.spec().1
    }

    const fn spec(self) -> (&'static str, f64) {
        match self {
            Self::Fillseq => ("fillseq", 1.0),
            Self::Fillrandom => ("fillrandom", 1.0),
            Self::Overwrite => ("overwrite", 1.0),
            Self::Readrandom => ("readrandom", 1.3),
            Self::Readmiss => ("readmiss", 1.0),
            Self::Readseq => ("readseq", 0.8),
            Self::Seekrandom => ("seek + 100 next", 1.0),
            Self::ReadrandomThreads2 => ("readrandom, 2 threads", 1.2),
            Self::MixedReads => ("read while writing: reads", 1.0),
            Self::MixedWrites => ("read while writing: writes", 1.0),
            Self::ReadrandomCache10 => ("readrandom, cache 10%", 1.0),
            Self::FillsyncThreads1 => ("fillsync, 1 thread", 1.0),
            Self::FillsyncThreads8 => ("fillsync, 8 threads", 1.0),
        }
    }
}

/// Limit of bytes written per user byte in fillrandom.
pub(crate) const FIRST_WRITE_AMPLIFICATION: f64 = 3.3;

/// Longest pause of a writer in fillrandom: at most this many milliseconds.
pub(crate) const FIRST_LONGEST_PAUSE_MS: f64 = 5.0;

/// Below this share of the target a ratio is a miss; from it on, within the noise of a repeat.
pub(crate) const TIE: f64 = 0.77;

/// How lsmkv did against a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Met,
    Tie,
    Missed,
}

impl Verdict {
    /// Compares a ratio of which more is better.
    pub(crate) fn of_ratio(ratio: f64, target: f64) -> Self {
        if ratio >= target {
            Self::Met
        } else if ratio >= target * TIE {
            Self::Tie
        } else {
            Self::Missed
        }
    }

    /// Compares a figure that must not exceed a limit; there is no tie.
    pub(crate) fn of_limit(figure: f64, limit: f64) -> Self {
        if figure <= limit { Self::Met } else { Self::Missed }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Tie => "tie",
            Self::Missed => "missed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_met_from_the_target_on_and_a_tie_from_77_percent_of_it() {
        assert_eq!(Verdict::of_ratio(1.3, 1.3), Verdict::Met);
        assert_eq!(Verdict::of_ratio(1.29, 1.3), Verdict::Tie);
        assert_eq!(Verdict::of_ratio(0.77, 1.0), Verdict::Tie);
        assert_eq!(Verdict::of_ratio(0.76, 1.0), Verdict::Missed);
        assert_eq!(Verdict::of_ratio(1.0, 1.3), Verdict::Missed);
        assert_eq!(Verdict::of_ratio(f64::NAN, 1.0), Verdict::Missed);
    }

    #[test]
    fn a_limit_may_be_reached_but_not_exceeded() {
        assert_eq!(Verdict::of_limit(3.3, FIRST_WRITE_AMPLIFICATION), Verdict::Met);
        assert_eq!(Verdict::of_limit(3.31, FIRST_WRITE_AMPLIFICATION), Verdict::Missed);
    }

    #[test]
    fn rows_are_named_alike_in_json_and_on_the_command_line() {
        for row in Row::all() {
            let json = serde_json::to_string(&row).unwrap();
            let option = row.to_possible_value().unwrap();
            assert_eq!(json.trim_matches('"'), option.get_name());
        }
    }
}
