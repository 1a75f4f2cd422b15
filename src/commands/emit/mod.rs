//! Writes the generated files from the command table. No part of the library: build.rs includes
//! it, beside `spec.rs` and `table`.

mod cpp;
mod dispatch;
mod documentation;
mod ffi;
mod header;
mod prose;
mod python;
mod sections;

use super::{session_table, spec};
use spec::{Access, Group, Keys, Row};

pub(crate) use cpp::cpp_commands;
pub(crate) use dispatch::dispatch;
pub(crate) use documentation::documentation;
pub(crate) use ffi::{functions, has_functions, names};
pub(crate) use python::{python_commands, python_signatures};
pub(crate) use sections::{Section, with_sections};

/// The method or function a command is, by its name.
fn method(row: &Row) -> String {
    let lower = row.name.to_ascii_lowercase();
    if matches!(lower.as_str(), "type" | "move") { format!("r#{lower}") } else { lower }
}

/// A mistake in the table that would lock the wrong keys, if there is one.
pub(crate) fn problem(groups: &[Group]) -> Option<String> {
    let rows = groups.iter().flat_map(|group| group.rows);
    let unlocked = |row: &&Row| {
        matches!(row.access, Access::Write | Access::AloneWith(_)) && row.keys == Keys::None
    };
    rows.clone().find(unlocked).map(|row| format!("{} writes but names no keys", row.name)).or_else(
        || {
            let mut names: Vec<_> = rows.map(|row| row.name).collect();
            names.sort_unstable();
            let twice = names.windows(2).find_map(|pair| match pair {
                [a, b] if a == b => Some(*a),
                _ => None,
            })?;
            Some(format!("{twice} has two rows"))
        },
    )
}
