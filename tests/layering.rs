//! Data flows down only: reads the `crate::` paths of every file in src and fails on an import
//! that the table in docs/ARCHITECTURE.md does not allow.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// What a layer may import, beside itself. `engine!` is the engine's facade: items that stand at
/// the root of `engine`, not its modules.
const TABLE: [(&str, &[&str]); 8] = [
    ("error", &[]),
    ("options", &["error"]),
    ("io", &[]),
    ("engine", &["io", "error", "options"]),
    ("encoding", &["io::codec", "error"]),
    ("types", &["encoding", "engine!", "io::clock", "io::splitmix", "error", "options"]),
    ("commands", &["types", "error", "options"]),
    ("ffi", &["commands", "types", "engine!", "error", "options"]),
];

/// Every `crate::` path in a text: the text from there to the end of the path, groups included.
fn crate_paths(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line.trim(), " "])
        .collect();
    code.match_indices("crate::")
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map(|(at, found)| path_at(&code[at + found.len()..]))
        .collect()
}

fn path_at(text: &str) -> String {
    let mut depth = 0;
    let mut path = String::new();
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            _ if depth > 0 || c.is_alphanumeric() || c == '_' || c == ':' => {}
            _ => break,
        }
        if !c.is_whitespace() {
            path.push(c);
        }
    }
    path
}

/// Whether a path names an item at the root of its module and nothing deeper.
fn is_facade(path: &str, module: &str) -> bool {
    let Some(items) = path.strip_prefix(module).and_then(|rest| rest.strip_prefix("::")) else {
        return path == module;
    };
    let items = items.trim_start_matches('{');
    // `Engine::open` goes through a type; `wal::Writer` goes into a module.
    items.split(',').all(|item| match item.split_once("::") {
        Some((first, _)) => first.starts_with(|c: char| c.is_uppercase()),
        None => true,
    })
}

fn allowed(layer: &str, path: &str, table: &[&str]) -> bool {
    let within = |module: &str| {
        path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    within(layer)
        || table.iter().any(|entry| match entry.strip_suffix('!') {
            Some(module) => within(module) && is_facade(path, module),
            None => within(entry),
        })
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_imports_only_what_its_layer_may() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let relative = file.strip_prefix(&src).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
        let layer = first.trim_end_matches(".rs");
        if layer == "lib" {
            continue;
        }
        let row = TABLE.iter().find(|(name, _)| *name == layer);
        let (_, table) = row.unwrap_or_else(|| panic!("src/{layer} is no layer of the table"));
        let text = fs::read_to_string(file).unwrap();
        for path in crate_paths(&text).iter().filter(|path| !allowed(layer, path, table)) {
            wrong.push(format!("{}: crate::{path}", relative.display()));
        }
        if text.contains("super::super") {
            wrong.push(format!("{}: super::super, name it from crate::", relative.display()));
        }
    }
    assert!(files.len() > 20, "only {} files were read", files.len());
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

#[test]
fn paths_are_found_in_groups_and_expressions_but_not_in_comments() {
    let text = "use crate::io::codec::{Reader, put_u64};\n// crate::ffi\nlet x = crate::error::new();\n\
                use crate::engine::{\n    Batch,\n    Engine,\n};\nuse other_crate::x;";
    assert_eq!(
        crate_paths(text),
        ["io::codec::{Reader,put_u64}", "error::new", "engine::{Batch,Engine,}"]
    );
}

#[test]
fn the_rules_can_refuse() {
    let (_, types) = TABLE.iter().find(|(name, _)| *name == "types").unwrap();
    assert!(allowed("types", "engine::{Batch,Engine}", types));
    assert!(allowed("types", "engine::Engine::open", types));
    assert!(allowed("types", "types::db::Db", types));
    assert!(!allowed("types", "engine::wal::Writer", types));
    assert!(!allowed("types", "engine::{Batch,wal::Writer}", types));
    assert!(!allowed("types", "io::fs::File", types));
    assert!(!allowed("types", "ffi::err", types));
    assert!(!allowed("types", "{ffi::err,types::db}", types));
    assert!(!allowed("io", "error::Error", &[]));
}
