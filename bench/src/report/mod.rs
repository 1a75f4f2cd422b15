//! What a run says: a table for the terminal, JSON and a chart for bench/results.

pub(crate) mod json;
pub(crate) mod summary;
pub(crate) mod svg;
pub(crate) mod table;

use std::fs;
use std::path::Path;

use crate::Result;
use summary::Summary;

/// Writes `<name>.json` and `<name>.svg`; what was written.
pub(crate) fn write(dir: &Path, name: &str, summary: &Summary) -> Result<Vec<String>> {
    fs::create_dir_all(dir)?;
    let files = [("json", json::render(summary)?), ("svg", svg::render(summary))];
    let mut written = Vec::new();
    for (extension, text) in files {
        let path = dir.join(format!("{name}.{extension}"));
        fs::write(&path, text)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}
