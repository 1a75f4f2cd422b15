//! `lsmkv stats` and `lsmkv levels`: what a store holds.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Args;
use lsmkv::Db;
use lsmkv::types::StatValue;
use serde_json::{Map, Value};

use super::tree;
use crate::failure::{Failure, Outcome};
use crate::store::InspectArgs;

/// Arguments of `stats` and `levels`.
#[derive(Args, Debug)]
pub(crate) struct InspectionArgs {
    #[command(flatten)]
    store: InspectArgs,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

/// `12.3 MiB`.
pub(crate) fn human(bytes: u64) -> String {
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

pub(crate) fn stats(args: &InspectionArgs) -> Outcome {
    let db = args.store.open_to_read()?;
    let text = if args.json { stats_json(&db)? } else { stats_text(&db)? };
    write!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// Every figure, a line each; bytes also in larger units.
pub(crate) fn stats_text(db: &Db) -> Result<String, Failure> {
    let stats = db.stats()?;
    let width = stats.iter().map(|stat| stat.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for stat in stats {
        let value = match stat.value {
            StatValue::Count(bytes) if stat.name.contains("bytes") => {
                format!("{bytes} ({})", human(bytes))
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

pub(crate) fn levels(args: &InspectionArgs) -> Outcome {
    let db = args.store.open_to_read()?;
    let text = if args.json {
        tree::json(&db)?
    } else {
        tree::picture(&db, std::io::stdout().is_terminal())?
    };
    write!(std::io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(1024), "1.0 KiB");
        assert_eq!(human(1536 * 1024), "1.5 MiB");
        assert_eq!(human(u64::MAX), "16384.0 PiB");
    }
}
