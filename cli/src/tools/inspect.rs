//! `lsmkv stats` and `lsmkv levels`: the content of a store.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Args;
use lsmkv::Db;
use lsmkv::StatValue;
use serde_json::{Map, Value};

use super::tree;
use crate::failure::{Failure, Outcome};
use crate::store::ReadOnlyStoreArgs;

/// Arguments of `stats` and `levels`.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    store: ReadOnlyStoreArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Formats a size as in `12.3 MiB`.
pub(crate) fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") }
}

pub(crate) fn stats(args: &InspectArgs) -> Outcome {
    let db = args.store.open_to_read()?;
    let text = if args.json { stats_json(&db)? } else { stats_text(&db)? };
    write!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// Every statistic on a line of its own; sizes also in larger units.
pub(crate) fn stats_text(db: &Db) -> Result<String, Failure> {
    let stats = db.stats()?;
    let width = stats.iter().map(|stat| stat.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for stat in stats {
        let value = match stat.value {
            StatValue::Count(bytes) if stat.name.contains("bytes") => {
                format!("{bytes} ({})", human_bytes(bytes))
            }
            StatValue::Count(count) => count.to_string(),
            StatValue::Ratio(ratio) => format!("{ratio:.3}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:width$}  {value}", stat.name);
    }
    Ok(text)
}

fn stats_json(db: &Db) -> Result<String, Failure> {
    let value = |value: StatValue| match value {
        StatValue::Count(count) => Value::from(count),
        StatValue::Ratio(ratio) => Value::from(ratio),
    };
    let stats = db.stats()?.into_iter().map(|stat| (stat.name.to_owned(), value(stat.value)));
    Ok(format!("{}\n", Value::Object(stats.collect::<Map<_, _>>())))
}

pub(crate) fn levels(args: &InspectArgs) -> Outcome {
    let db = args.store.open_to_read()?;
    let text = if args.json {
        tree::json(&db)?
    } else {
        tree::render(&db, std::io::stdout().is_terminal())?
    };
    write!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::human_bytes;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(1024), "1.0 KiB");
        assert_eq!(human_bytes(1536 * 1024), "1.5 MiB");
        assert_eq!(human_bytes(u64::MAX), "16384.0 PiB");
    }
}
