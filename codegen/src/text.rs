//! Layout of generated text.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Wraps a text into lines of at most `width` characters, each after `prefix`.
pub(crate) fn wrapped(text: &str, prefix: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{prefix}{line}\n")).collect()
}

/// Makes the first letter of a sentence lower-case, for use after a colon.
pub(crate) fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Breaks a comma-separated sequence into lines of at most 100 characters. The first is indented by
/// `indent`, the others further.
pub(crate) fn filled(text: &str, indent: usize) -> String {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split_inclusive(", ") {
        let fits = |line: &String| line.len() + word.trim_end().len() <= 100;
        match lines.last_mut() {
            Some(line) if line.trim().is_empty() || fits(line) => line.push_str(word),
            _ => lines.push(format!("{}{word}", " ".repeat(indent + 4))),
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Formats Rust code like `cargo fmt`.
pub(crate) fn formatted(code: &str, root: &std::path::Path) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("rustfmt: {e}");
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout", "--config-path"])
        .arg(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut stdin = rustfmt.stdin.take().ok_or("rustfmt: no input")?;
    stdin.write_all(code.as_bytes()).map_err(failed)?;
    drop(stdin);
    let output = rustfmt.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("rustfmt refused generated code:\n{code}"));
    }
    String::from_utf8(output.stdout).map_err(|e| format!("rustfmt: {e}"))
}
