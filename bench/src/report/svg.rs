//! A bar chart of each peer's throughput relative to RocksDB's.
//!
//! Drawn on a ground of its own, whose colours follow the reader's light or dark preference, so
//! it is legible on any page. A bar longer than the scale is cut and keeps its figure.

use std::fmt::Write;

use super::summary::{RowSummary, Summary};
use crate::peers::Kind;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 64.0;
const BAR: f64 = 9.0;
const GAP: f64 = 10.0;
/// Ratios beyond this are cut.
const SCALE_LIMIT: f64 = 4.0;

/// The peers that get a bar; RocksDB is the line at 1.
const BARS: [Kind; 3] = [Kind::Lsmkv, Kind::Fjall, Kind::Lmdb];

const STYLE: &str = "\
  .ground { fill: #ffffff; } text { fill: #24292f; font: 12px system-ui, sans-serif; }
  .small { font-size: 9px; paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
  .grid { stroke: #d0d7de; } .one { stroke: #57606a; }
  .lsmkv { fill: #0969da; } .fjall { fill: #bf8700; } .lmdb { fill: #8c959f; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; } text { fill: #e6edf3; } .small { stroke: #0d1117; }
    .grid { stroke: #30363d; } .one { stroke: #8d96a0; }
    .lsmkv { fill: #58a6ff; } .fjall { fill: #d29922; } .lmdb { fill: #6e7681; }
  }
";

pub(crate) fn render(summary: &Summary) -> String {
    let kinds: Vec<Kind> = BARS.into_iter().filter(|kind| measured(summary, *kind)).collect();
    let group = kinds.len().max(1) as f64 * BAR + GAP;
    let height = TOP + summary.rows.len() as f64 * group + 16.0;
    let scale = Scale::new(summary, &kinds);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>Throughput relative to RocksDB</title>\n<style>\n{STYLE}</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n"
    );
    svg.push_str(&key(&kinds));
    svg.push_str(&grid(&scale, height));
    for (index, row) in summary.rows.iter().enumerate() {
        svg.push_str(&bars(row, &kinds, &scale, TOP + index as f64 * group));
    }
    svg + "</svg>\n"
}

fn measured(summary: &Summary, kind: Kind) -> bool {
    summary.rows.iter().any(|row| row.relative(kind).is_some())
}

/// From ratios to places.
struct Scale {
    limit: f64,
}

impl Scale {
    fn new(summary: &Summary, kinds: &[Kind]) -> Self {
        let all = summary.rows.iter().flat_map(|row| kinds.iter().map(|kind| row.relative(*kind)));
        let largest = all.flatten().fold(1.5, f64::max);
        Self { limit: largest.min(SCALE_LIMIT).ceil() }
    }

    fn length(&self, ratio: f64) -> f64 {
        ratio.min(self.limit) / self.limit * (WIDTH - LEFT - RIGHT)
    }
}

fn key(kinds: &[Kind]) -> String {
    let mut svg = "<text x=\"12\" y=\"22\">Throughput, RocksDB = 1</text>\n".to_owned();
    for (kind, place) in kinds.iter().zip(0_u16..) {
        let x = LEFT + f64::from(place) * 90.0;
        let _infallible = writeln!(
            svg,
            "<rect class=\"{}\" x=\"{x}\" y=\"12\" width=\"12\" height=\"12\"/>\
             <text x=\"{}\" y=\"22\">{}</text>",
            class(*kind),
            x + 17.0,
            kind.title(),
        );
    }
    svg
}

fn grid(scale: &Scale, height: f64) -> String {
    let mut svg = String::new();
    let mut ratio = 0.0;
    while ratio <= scale.limit {
        let x = LEFT + scale.length(ratio);
        let line = if (ratio - 1.0).abs() < 0.01 { "one" } else { "grid" };
        let _infallible = writeln!(
            svg,
            "<line class=\"{line}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{ratio}x</text>",
            TOP - 6.0,
            height - 10.0,
            TOP - 12.0,
        );
        ratio += 1.0;
    }
    svg
}

fn bars(row: &RowSummary, kinds: &[Kind], scale: &Scale, top: f64) -> String {
    let middle = top + kinds.len() as f64 * BAR / 2.0 + 4.0;
    let mut svg = format!(
        "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\n",
        LEFT - 8.0,
        row.row.title(),
    );
    let mut y = top;
    for kind in kinds {
        if let Some(ratio) = row.relative(*kind) {
            let length = scale.length(ratio);
            let _infallible = writeln!(
                svg,
                "<rect class=\"{}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" \
                 height=\"{}\"/><text class=\"small\" x=\"{:.1}\" y=\"{:.1}\">{ratio:.2}</text>",
                class(*kind),
                BAR - 1.0,
                LEFT + length + 4.0,
                y + BAR - 1.5,
            );
        }
        y += BAR;
    }
    svg
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Lsmkv => "lsmkv",
        Kind::Rocksdb => "rocksdb",
        Kind::Fjall => "fjall",
        Kind::Lmdb => "lmdb",
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::example;
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_ratios_and_cut_at_the_scales_end() {
        let scale = Scale { limit: 4.0 };
        assert!((scale.length(2.0) * 2.0 - scale.length(4.0)).abs() < 1e-9);
        assert!((scale.length(9.0) - scale.length(4.0)).abs() < 1e-9);
    }

    #[test]
    fn the_chart_has_a_bar_for_each_measured_ratio_and_none_for_absent_peers() {
        let svg = render(&example());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<rect class=\"lsmkv\"").count(), 3, "two bars and the key");
        assert_eq!(svg.matches("<rect class=\"fjall\"").count(), 0);
        assert!(svg.contains(">2.50</text>"), "LMDB's readrandom");
        assert!(svg.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn every_opened_element_is_closed() {
        let svg = render(&example());
        for element in ["svg", "text", "title", "style"] {
            let opened = svg.matches(&format!("<{element}")).count();
            assert_eq!(opened, svg.matches(&format!("</{element}>")).count(), "{element}");
        }
    }
}
