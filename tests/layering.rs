//! Data flows down only: reads the paths of every file in src and fails on an import that the table
//! in docs/ARCHITECTURE.md does not allow, and on modules of a folder that import each other in a
//! circle.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a layer may import, beside itself. `engine!` is the engine's facade: items that stand at
/// the root of `engine`, not its modules.
const TABLE: [(&str, &[&str]); 21] = [
    ("sync", &[]),
    ("error", &[]),
    ("options", &["error"]),
    ("tls", &["error", "options"]),
    ("io", &["sync::descriptors"]),
    ("engine", &["io", "sync", "error", "options"]),
    ("encoding", &["io::codec", "error"]),
    ("keyspace", &["encoding", "engine!", "io::clock", "error", "options"]),
    ("messages", &["encoding::glob", "error"]),
    (
        "txn",
        &[
            "messages",
            "keyspace",
            "encoding",
            "engine!",
            "io::splitmix",
            "sync",
            "error",
            "options",
        ],
    ),
    ("types", &["txn", "messages", "keyspace", "encoding", "engine!", "io::splitmix", "error"]),
    ("reclaim", &["txn", "messages", "keyspace", "encoding", "engine!", "sync", "error"]),
    (
        "admin",
        &[
            "types",
            "reclaim",
            "txn",
            "keyspace",
            "encoding",
            "engine!",
            "io::clock",
            "error",
            "options",
        ],
    ),
    // The root names the script engine, so that commands need not know the layer above them.
    ("commands", &["types", "txn", "messages", "error", "options", "SCRIPT_ENGINE"]),
    ("rdb", &[]),
    ("scripting", &["commands", "types", "txn", "keyspace", "encoding", "rdb", "error", "options"]),
    ("remote", &["commands", "keyspace::limits", "tls", "sync", "error", "options"]),
    ("resp", &["commands", "error"]),
    (
        "server",
        &[
            "resp", "commands", "admin", "types", "txn", "messages", "tls", "sync", "error",
            "options",
        ],
    ),
    (
        "places",
        &[
            "server",
            "remote",
            "commands",
            "types",
            "txn",
            "messages",
            "keyspace::limits",
            "sync",
            "error",
            "options",
        ],
    ),
    (
        "ffi",
        &[
            "places",
            "server",
            "remote",
            "commands",
            "admin",
            "types",
            "txn",
            "messages",
            "keyspace::limits",
            "engine!",
            "sync",
            "error",
            "options",
        ],
    ),
];

/// What the tests inside these layers may import too: they run commands on a store, and a store is
/// opened by a layer above theirs.
const STORE_LAYERS: [&str; 7] = ["keyspace", "txn", "types", "reclaim", "admin", "remote", "resp"];
const TESTS_OF_STORE_LAYERS: [&str; 9] = [
    "keyspace",
    "txn",
    "types",
    "reclaim",
    "admin",
    "io::clock",
    "io::splitmix",
    "options",
    "error",
];

/// Folders whose modules import each other without cycles, and so do those of their subfolders.
const ACYCLIC: [&str; 9] =
    ["engine", "io", "encoding", "messages", "keyspace", "txn", "types", "reclaim", "admin"];

fn without_comments(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line.trim(), " "])
        .collect()
}

/// Every path in a text that begins with `start`: from there to its end, groups included.
fn paths_from(text: &str, start: &str) -> Vec<String> {
    let code = without_comments(text);
    code.match_indices(start)
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c)))
        .map(|(at, found)| path_at(&code[at + found.len()..]))
        .collect()
}

fn crate_paths(text: &str) -> Vec<String> {
    paths_from(text, "crate::")
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

/// The paths that a path with groups stands for: `a::{b,c::d}` is `a::b` and `a::c::d`.
fn flattened(path: &str) -> Vec<String> {
    let Some((start, group)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (mut depth, mut item, mut all) = (0, String::new(), Vec::new());
    for c in group.strip_suffix('}').unwrap_or(group).chars().chain([',']) {
        match c {
            ',' if depth == 0 => {
                let item = std::mem::take(&mut item);
                all.extend(flattened(&item).into_iter().filter(|item| !item.is_empty()));
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        item.push(c);
    }
    all.iter().map(|item| format!("{start}{item}")).collect()
}

/// A text without the test modules that are written in it, which stand at its end.
fn without_tests(text: &str) -> &str {
    let tests = text.match_indices("#[cfg(test)]").find(|(at, found)| {
        let rest = text[at + found.len()..].trim_start();
        let item = rest.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
        item.contains("mod ") && item.trim_end().ends_with('{')
    });
    tests.map_or(text, |(at, _)| &text[..at])
}

fn is_test(component: &str) -> bool {
    component == "tests" || component == "testing" || component.ends_with("_tests")
}

/// The names that a folder's module re-exports, with the child each comes from.
fn reexports(module: &str) -> BTreeMap<String, String> {
    let code = without_comments(module);
    let mut from = BTreeMap::new();
    for (at, found) in code.match_indices(" use ") {
        if !code[..at].trim_end().ends_with([')', 'b']) {
            continue;
        }
        for path in flattened(&path_at(&code[at + found.len()..])) {
            if let (Some((child, _)), Some((_, item))) =
                (path.split_once("::"), path.rsplit_once("::"))
            {
                from.insert(item.to_owned(), child.to_owned());
            }
        }
    }
    from
}

/// Which modules of a folder import which others, with the file and path of one such import.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

fn imports_within(src: &Path, folder: &str) -> Imports {
    let dir = src.join(folder);
    let module = fs::read_to_string(dir.join("mod.rs"))
        .or_else(|_| fs::read_to_string(dir.with_extension("rs")))
        .unwrap();
    let reexports = reexports(&module);
    let folder_path: Vec<&str> = folder.split('/').collect();
    let mut files = Vec::new();
    rust_files(&dir, &mut files);
    let relative = |file: &Path| {
        let path = file.strip_prefix(&dir).unwrap().with_extension("");
        path.iter().map(|it| it.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let children: BTreeSet<String> =
        files.iter().map(|file| relative(file)[0].clone()).filter(|it| it != "mod").collect();
    let mut imports = Imports::new();
    for file in &files {
        let mut own = relative(file);
        if own[0] == "mod" || own.iter().any(|component| is_test(component)) {
            continue;
        }
        if own.last().is_some_and(|last| last == "mod") {
            own.pop();
        }
        let text = fs::read_to_string(file).unwrap();
        let text = without_tests(&text);
        let parent =
            [&folder_path, &own.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat();
        let parent = parent[..parent.len() - 1].join("::");
        let above = paths_from(text, "super::").into_iter().map(|path| format!("{parent}::{path}"));
        for path in crate_paths(text).into_iter().chain(above).flat_map(|path| flattened(&path)) {
            let Some(inner) = path.strip_prefix(&format!("{}::", folder_path.join("::"))) else {
                continue;
            };
            let first = inner.split("::").next().unwrap_or_default();
            let child = if children.contains(first) { Some(first) } else { None };
            let child = child.or_else(|| reexports.get(first).map(String::as_str));
            if let Some(child) = child.filter(|child| *child != own[0]) {
                let at = file.strip_prefix(src).unwrap();
                let edges = imports.entry(own[0].clone()).or_default();
                edges.entry(child.to_owned()).or_insert(format!("{}: {path}", at.display()));
            }
        }
    }
    imports
}

/// A cycle, if there is one: modules that import each the next, and the last the first.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    fn visit<'i>(
        module: &'i str,
        imports: &'i Imports,
        path: &mut Vec<&'i str>,
        done: &mut BTreeSet<&'i str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = path.iter().position(|it| *it == module) {
            return Some(path[at..].iter().map(|it| (*it).to_owned()).collect());
        }
        if !done.insert(module) {
            return None;
        }
        path.push(module);
        let next = imports.get(module).into_iter().flat_map(BTreeMap::keys);
        let found = next.into_iter().find_map(|next| visit(next, imports, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| visit(module, imports, &mut Vec::new(), &mut done))
}

fn folders_below(src: &Path, folder: &str, found: &mut Vec<String>) {
    found.push(folder.to_owned());
    for entry in fs::read_dir(src.join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let holds_modules = path.join("mod.rs").exists() || path.with_extension("rs").exists();
        if path.is_dir() && holds_modules && !is_test(name) {
            folders_below(src, &format!("{folder}/{name}"), found);
        }
    }
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

/// Whether a file holds nothing but tests.
fn is_test_file(relative: &Path) -> bool {
    relative.components().any(|part| {
        let name = part.as_os_str().to_str().unwrap().trim_end_matches(".rs");
        matches!(name, "tests" | "testing") || name.ends_with("_tests")
    })
}

/// A file's text before the tests at its end, and those tests.
fn split_tests(relative: &Path, text: &str) -> (String, String) {
    if is_test_file(relative) {
        return (String::new(), text.to_owned());
    }
    let at = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    (text[..at].to_owned(), text[at..].to_owned())
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
        let (code, tests) = match STORE_LAYERS.contains(&layer) {
            true => split_tests(relative, &text),
            false => (text.clone(), String::new()),
        };
        let may_import = |path: &str, tests: bool| {
            allowed(layer, path, table) || tests && allowed(layer, path, &TESTS_OF_STORE_LAYERS)
        };
        let code = crate_paths(&code).into_iter().filter(|path| !may_import(path, false));
        let tests = crate_paths(&tests).into_iter().filter(|path| !may_import(path, true));
        wrong
            .extend(code.chain(tests).map(|path| format!("{}: crate::{path}", relative.display())));
        if text.contains("super::super") {
            wrong.push(format!("{}: super::super, name it from crate::", relative.display()));
        }
    }
    assert!(files.len() > 20, "only {} files were read", files.len());
    assert!(wrong.is_empty(), "forbidden imports:\n{}", wrong.join("\n"));
}

#[test]
fn modules_of_a_folder_do_not_import_each_other_in_a_circle() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = Vec::new();
    ACYCLIC.iter().for_each(|folder| folders_below(&src, folder, &mut folders));
    assert!(folders.len() > 8, "only {folders:?} were read");
    let mut circles = Vec::new();
    for folder in &folders {
        let imports = imports_within(&src, folder);
        if let Some(modules) = cycle(&imports) {
            circles.push(format!("{folder}: {} -> {}", modules.join(" -> "), modules[0]));
            let next = modules.iter().cycle().skip(1);
            circles.extend(modules.iter().zip(next).map(|(a, b)| format!("  {}", imports[a][b])));
        }
    }
    assert!(circles.is_empty(), "import cycles:\n{}", circles.join("\n"));
}

#[test]
fn a_cycle_is_found_and_told() {
    let edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("a", "d")];
    let mut imports = Imports::new();
    for (from, to) in edges {
        imports.entry(from.into()).or_default().insert(to.into(), String::new());
    }
    assert_eq!(cycle(&imports).unwrap(), ["b", "c", "d"]);
    imports.get_mut("d").unwrap().clear();
    assert_eq!(cycle(&imports), None);
}

#[test]
fn imports_are_read_from_groups_and_facades_but_not_from_tests() {
    assert_eq!(flattened("a::{b,c::{d,e},F}"), ["a::b", "a::c::d", "a::c::e", "a::F"]);
    let facade = "mod x; pub use x::{A, y::B}; pub(crate) use z::C; use hidden::D;";
    let names = reexports(facade);
    assert_eq!(names.keys().collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!((names["B"].as_str(), names["C"].as_str()), ("x", "z"));
    let text =
        "code\n#[cfg(test)]\nfn kept() {}\n#[cfg(test)]\n#[allow(x)]\npub(crate) mod tests {\n";
    assert_eq!(without_tests(text), "code\n#[cfg(test)]\nfn kept() {}\n");
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
    assert!(allowed("types", "types::glob::matches", types));
    assert!(allowed("types", "txn::Db", types));
    assert!(!allowed("types", "admin::Stat", types));
    assert!(!allowed("types", "engine::wal::Writer", types));
    assert!(!allowed("types", "engine::{Batch,wal::Writer}", types));
    assert!(!allowed("types", "io::fs::File", types));
    assert!(!allowed("types", "ffi::err", types));
    assert!(!allowed("types", "{ffi::err,types::glob}", types));
    assert!(!allowed("io", "error::Error", &[]));
}
