//! Draws the levels of the tree of tables.
//!
//! ```text
//! meta            files       size    entries  deletes  expired
//!   L0  ██            2    1.2 MiB      24310     1.2%     3.0%
//!   L6  ██████████    5   60.1 MiB    1200331     0.0%     0.4%
//! ```

use std::fmt::Write as _;

use lsmkv::Db;
use lsmkv::TableInfo;
use serde_json::{Value, json};

use super::inspect::human_bytes;
use crate::failure::Failure;

const BAR: usize = 30;
const RED: &str = "\x1b[31m";
const CYAN: &str = "\x1b[36m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The sums over one level of a tree.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    files: u64,
    bytes: u64,
    entries: u64,
    tombstones: u64,
    expired: u64,
}

impl Level {
    fn add(&mut self, table: &TableInfo) {
        self.files += 1;
        self.bytes += table.bytes;
        self.entries += table.entries;
        self.tombstones += table.tombstones;
        self.expired += table.expired;
    }
}

/// The trees with their non-empty levels, in order.
fn summed(tables: &[TableInfo]) -> Vec<(&'static str, Vec<(u8, Level)>)> {
    let mut trees: Vec<(&'static str, Vec<(u8, Level)>)> =
        ["meta", "data", "score"].map(|name| (name, Vec::new())).into();
    for table in tables {
        let Some((_, levels)) = trees.iter_mut().find(|tree| tree.0 == table.tree) else {
            continue;
        };
        match levels.iter_mut().find(|level| level.0 == table.level) {
            Some((_, level)) => level.add(table),
            None => {
                let mut level = Level::default();
                level.add(table);
                levels.push((table.level, level));
            }
        }
    }
    trees
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// Draws the trees, with or without colours.
pub(crate) fn render(db: &Db, colours: bool) -> Result<String, Failure> {
    let tables = db.tables()?;
    let stats = db.engine_stats();
    let trees = summed(&tables);
    let largest = trees.iter().flat_map(|tree| &tree.1).map(|level| level.1.bytes).max();
    let paint = |colour: &'static str| if colours { colour } else { "" };
    let mut text = String::new();
    for (name, levels) in &trees {
        let in_memory = stats.trees.iter().find(|tree| tree.name == *name);
        let in_memory = in_memory.map_or(0, |tree| tree.memtable_entries);
        let (bold, plain) = (paint(BOLD), paint(PLAIN));
        let _ = writeln!(
            text,
            "{bold}{name:5}{plain} {:BAR$} {:>6} {:>11} {:>11} {:>8} {:>8}",
            "", "files", "size", "entries", "deletes", "expired"
        );
        if in_memory > 0 {
            let _ = writeln!(text, "  mem {:BAR$} {:>6} {:>11} {in_memory:>11}", "", "", "");
        }
        for (number, level) in levels {
            line(&mut text, *number, level, largest.unwrap_or(1), colours);
        }
        if levels.is_empty() && in_memory == 0 {
            let _ = writeln!(text, "  empty");
        }
    }
    let bytes: u64 = tables.iter().map(|table| table.bytes).sum();
    let _ = writeln!(
        text,
        "{} files, {} in tables, {} in memory, {} of log",
        tables.len(),
        human_bytes(bytes),
        human_bytes(stats.memtable_bytes),
        human_bytes(stats.log_bytes)
    );
    Ok(text)
}

fn line(text: &mut String, number: u8, level: &Level, largest: u64, colours: bool) {
    let paint = |colour: &'static str| if colours { colour } else { "" };
    // A level with files gets at least one cell.
    let cells = (level.bytes as f64 / largest.max(1) as f64 * BAR as f64).round().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to BAR")]
    let cells = (cells as usize).min(BAR);
    let bar = "█".repeat(cells);
    let (deletes, expired) =
        (share(level.tombstones, level.entries), share(level.expired, level.entries));
    let alarm = |percent: f64| if percent >= 20.0 { paint(RED) } else { "" };
    let plain = paint(PLAIN);
    let _ = writeln!(
        text,
        "  L{number}  {}{bar}{plain}{:pad$} {:>6} {:>11} {:>11} {}{deletes:>7.1}%{plain} {}{expired:>7.1}%{plain}",
        paint(CYAN),
        "",
        level.files,
        human_bytes(level.bytes),
        level.entries,
        alarm(deletes),
        alarm(expired),
        pad = BAR - cells
    );
}

/// The levels of all trees as JSON.
pub(crate) fn json(db: &Db) -> Result<String, Failure> {
    let tables = db.tables()?;
    let trees = summed(&tables).into_iter().map(|(name, levels)| {
        let levels: Vec<Value> = levels
            .iter()
            .map(|(number, level)| {
                json!({
                    "level": number,
                    "files": level.files,
                    "bytes": level.bytes,
                    "entries": level.entries,
                    "tombstones": level.tombstones,
                    "expired": level.expired,
                })
            })
            .collect();
        (name.to_owned(), Value::from(levels))
    });
    Ok(format!("{}\n", Value::Object(trees.collect())))
}
