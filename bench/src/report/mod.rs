//! What a run says: a table for the terminal, JSON and a chart for bench/results.

pub(crate) mod json;
pub(crate) mod summary;
pub(crate) mod svg;
pub(crate) mod table;

use std::fs;
use std::path::Path;

use crate::Result;

/// Writes `<name>.<extension>` for each extension and its text; what was written.
pub(crate) fn write(dir: &Path, name: &str, files: &[(&str, String)]) -> Result<Vec<String>> {
    fs::create_dir_all(dir)?;
    let mut written = Vec::new();
    for (extension, text) in files {
        let path = dir.join(format!("{name}.{extension}"));
        fs::write(&path, text)?;
        written.push(path.display().to_string());
    }
    Ok(written)
}
