//! The table for the terminal.

use std::fmt::Write;

use super::summary::{FillSummary, PeerInfo, Summary};
use crate::peers::Kind;
use crate::plan::Compression;
use crate::rows::TIE;

pub(crate) fn render(summary: &Summary) -> String {
    let mut text = String::new();
    let sections = [rates(summary), fillrandom(summary), legend(summary)];
    for section in sections {
        text.push('\n');
        text.push_str(&section);
    }
    text
}

fn rates(summary: &Summary) -> String {
    let mut lines = vec![header(&["thousand ops/s"], &["/RocksDB", "/best", "first", "verdict"])];
    for row in &summary.rows {
        let mut line = vec![row.row.title().to_owned()];
        line.extend(
            Kind::ALL
                .map(|kind| cell(row.rates.get(&kind).map(|spread| figure(spread.median / 1e3)))),
        );
        line.push(cell(row.to_rocksdb.map(times)));
        line.push(cell(row.to_best.map(times)));
        line.push(times(row.first));
        line.push(cell(row.verdict.map(|verdict| verdict.word().to_owned())));
        lines.push(line);
    }
    align(&lines)
}

fn fillrandom(summary: &Summary) -> String {
    if summary.fillrandom.is_empty() {
        return String::new();
    }
    type Part = fn(&FillSummary) -> Option<f64>;
    let parts: [(&str, Part); 6] = [
        ("p50, us", |fill| fill.p50_us),
        ("p99, us", |fill| fill.p99_us),
        ("p99.9, us", |fill| fill.p999_us),
        ("longest pause, ms", |fill| fill.longest_pause_ms),
        ("space on disk, MiB", |fill| fill.disk_bytes.map(|bytes| bytes / 1_048_576.0)),
        ("write amplification", |fill| fill.write_amplification),
    ];
    let mut lines = vec![header(&["fillrandom"], &["first", "verdict"])];
    for (title, part) in parts {
        let mut line = vec![title.to_owned()];
        line.extend(
            Kind::ALL.map(|kind| cell(summary.fillrandom.get(&kind).and_then(part).map(figure))),
        );
        let limit = summary.limits.iter().find(|limit| limit.title == title);
        line.push(limit.map_or_else(String::new, |limit| format!("<= {}", figure(limit.first))));
        line.push(limit.map_or_else(String::new, |limit| limit.verdict.word().to_owned()));
        lines.push(line);
    }
    align(&lines)
}

fn legend(summary: &Summary) -> String {
    let plan = &summary.plan;
    let settings = &plan.settings;
    let compression = match settings.compression {
        Compression::None => "compression off",
        Compression::Lz4 => "LZ4 (LMDB has none)",
    };
    let text = format!(
        "{} keys of 16 B, values of {} B, median of {} interleaved repeats, a process each.\n\
         {} MiB write buffer, {} MiB cache, {} filter bits, {} background jobs, log on, \
         {compression}.\n\
         Verdict: met from the target on, tie from {TIE} of it. /best: to the best other peer.\n\
         Every put is a write of its own; unsynced ones reach the operating system. Reads follow \
         a flush and quiet\n\
         compactions (LMDB: a sync) and a warm-up of a tenth.\n\
         LMDB: unsynced rows run with MDB_NOSYNC and MDB_WRITEMAP, which is not crash safe; it \
         has no cache of its\n\
         own, so the page cache serves it in every row; each get is a read transaction. fjall: \
         its default filters\n\
         (10 bits, more in level 0). lsmkv: sync = off for unsynced rows, always for fillsync.\n\
         Write amplification: write_bytes of /proc/self/io from the first put until settled, to \
         bytes of keys and values.\n",
        plan.num,
        plan.value_bytes,
        summary.repeats,
        settings.write_buffer >> 20,
        settings.cache >> 20,
        settings.bloom_bits,
        settings.background_jobs,
    );
    text + &peers_and_failures(&summary.peers, Kind::title, &summary.failures)
}

/// Which versions were measured, why others were not, and what did not finish.
pub(crate) fn peers_and_failures<K: Copy>(
    peers: &[PeerInfo<K>],
    title: fn(K) -> &'static str,
    failures: &[String],
) -> String {
    let mut text = String::new();
    for peer in peers {
        let state =
            peer.absence.as_ref().map_or_else(String::new, |why| format!(": no figures, {why}"));
        let _infallible = writeln!(text, "{} {}{state}", title(peer.peer), peer.version);
    }
    for failure in failures {
        let _infallible = writeln!(text, "FAILED: {failure}");
    }
    text
}

fn header(first: &[&str], last: &[&str]) -> Vec<String> {
    let peers = Kind::ALL.map(Kind::title);
    first.iter().chain(&peers).chain(last).map(|title| (*title).to_owned()).collect()
}

/// Columns as wide as their widest cell: the first to the left, the others to the right.
pub(crate) fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| lines.iter().filter_map(|l| l.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut aligned = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _infallible = if column == 0 {
                write!(aligned, "{cell:<width$}")
            } else {
                write!(aligned, "  {cell:>width$}")
            };
        }
        text.push_str(aligned.trim_end());
        text.push('\n');
    }
    text
}

/// Three significant digits or so.
pub(crate) fn figure(number: f64) -> String {
    match number {
        n if n >= 99.95 => format!("{n:.0}"),
        n if n >= 9.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

pub(crate) fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

pub(crate) fn cell(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::example;
    use super::*;

    #[test]
    fn columns_line_up() {
        let lines = [["ab", "1", "22"], ["c", "333", "4"]];
        let lines = lines.map(|line| line.map(str::to_owned).to_vec());
        assert_eq!(align(&lines), "ab    1  22\nc   333   4\n");
    }

    #[test]
    fn figures_have_about_three_digits() {
        let shown = [1234.5, 99.96, 45.67, 9.996, 1.234, 0.0].map(figure);
        assert_eq!(shown, ["1234", "100", "45.7", "10.0", "1.23", "0.00"]);
    }

    #[test]
    fn the_table_shows_rates_ratios_verdicts_reasons_and_failures() {
        let text = render(&example());
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("fillseq"), "fillseq 190 95.0 - 50.0 2.00x 2.00x 1.00x met");
        assert_eq!(line("readrandom"), "readrandom 50.0 100 - 250 0.50x 0.20x 1.30x missed");
        assert_eq!(line("longest"), "longest pause, ms 6.00 6.00 - 6.00 <= 5.00 missed");
        assert!(line("fjall").contains("no figures, not asked for"));
        assert_eq!(line("FAILED"), "FAILED: LMDB, repeat 3: it fell over");
    }
}
