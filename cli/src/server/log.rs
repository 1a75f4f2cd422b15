//! Lines for whoever runs the server, on standard error.

use std::io::Write as _;

/// One line.
pub(crate) fn line(text: &str) {
    // A server goes on when nobody can read what it says.
    let _ = writeln!(std::io::stderr(), "lsmkv: {text}");
}
