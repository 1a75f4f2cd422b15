//! Two jobs: the linker flags of the shared library, and the generated files.
//!
//! `include/lsmkv.h` is generated from `src/ffi`, the dispatch of commands and docs/COMMANDS.md
//! from the command table, methods of the C++ binding and a part of the Python package from both;
//! all are committed. A build only compares, and fails with advice when one is stale: a build that
//! rewrote it would hide that from CI. With LSMKV_GENERATE set (`make generate`) it is written
//! instead.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/commands/emit/mod.rs"]
mod emit;
#[path = "src/commands/session/table.rs"]
mod session_table;
#[path = "src/commands/spec.rs"]
mod spec;
#[path = "src/commands/table/mod.rs"]
mod table;

/// The parts of the header in their order: titles and the files of src/ffi they come from.
const SECTIONS: &[(&str, &[&str])] = &[
    ("The library", &["version.rs"]),
    ("Buffers", &["status.rs", "err.rs", "slice.rs", "buffer.rs"]),
    ("Replies", &["reply.rs"]),
    ("Options", &["options.rs"]),
    ("Opening and closing", &["handle.rs", "flags.rs", "db.rs"]),
    ("Databases, snapshots, sessions", &["views.rs"]),
    ("Transactions", &["transaction.rs"]),
    ("Batches", &["batch.rs"]),
    ("Commands by name", &["command.rs"]),
    ("Strings", &["string.rs", "generated/string.rs"]),
    ("Bits", &["bits.rs"]),
    ("Hashes", &["hash.rs", "generated/hash.rs"]),
    ("Lists", &["list.rs", "generated/list.rs"]),
    ("Sets", &["set.rs", "generated/set.rs"]),
    ("Sorted sets", ZSET),
    ("Keys", &["expire.rs", "key.rs", "generated/key.rs"]),
    ("Scans and sorting", &["scan.rs"]),
    ("Iterators", &["iter.rs"]),
    ("Upkeep", &["upkeep.rs"]),
];

const ZSET: &[&str] =
    &["zset/add.rs", "generated/zset.rs", "zset/range.rs", "zset/remove.rs", "zset/combine.rs"];

const CPP_COMMANDS: &str = "bindings/cpp/lsmkv/commands.hpp";
const PYTHON_SIGNATURES: &str = "bindings/python/lsmkv/_signatures.py";
const PYTHON_COMMANDS: &str = "bindings/python/lsmkv/_regular.py";

fn main() {
    link_flags();
    println!("cargo::rerun-if-env-changed=LSMKV_GENERATE");
    for path in ["build.rs", "src/ffi", "src/commands", "include", "docs", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={path}");
    }
    for path in [CPP_COMMANDS, PYTHON_SIGNATURES, PYTHON_COMMANDS] {
        println!("cargo::rerun-if-changed={path}");
    }
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    if let Err(problem) = check(&root) {
        println!("cargo::error={problem}");
    }
}

/// Plain cargo sets no SONAME. Without nodelete, a thread that ends after dlclose would run
/// destructors that are no longer there.
fn link_flags() {
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        let major = variable("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblsmkv.so.{major}");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

fn check(root: &Path) -> Result<(), String> {
    if let Some(problem) = emit::problem(table::GROUPS) {
        return Err(format!("src/commands/table: {problem}"));
    }
    compare(root, "src/commands/generated/dispatch.rs", emit::dispatch(table::GROUPS))?;
    for group in table::GROUPS.iter().filter(|group| emit::has_functions(group)) {
        let name = format!("src/ffi/generated/{}.rs", group.module);
        compare(root, &name, emit::functions(group))?;
    }
    let header = header(root)?;
    let (methods, signatures) = (
        emit::cpp_commands(&header, table::GROUPS, table::FUNCTIONS)?,
        emit::python_signatures(&header)?,
    );
    compare(root, "include/lsmkv.h", header)?;
    compare(root, CPP_COMMANDS, methods)?;
    // A published package has no docs and no Python package.
    if root.join("bindings/python").exists() {
        compare(root, PYTHON_SIGNATURES, signatures)?;
        compare(root, PYTHON_COMMANDS, emit::python_commands(table::GROUPS))?;
    }
    if root.join("docs").exists() {
        let documentation =
            emit::documentation(table::GROUPS, table::FUNCTIONS, session_table::SESSION_ROWS);
        compare(root, "docs/COMMANDS.md", documentation)?;
    }
    Ok(())
}

/// Fails if a generated file is stale, or writes it when asked to.
fn compare(root: &Path, name: &str, fresh: String) -> Result<(), String> {
    let path = root.join(name);
    if fs::read_to_string(&path).unwrap_or_default() == fresh {
        return Ok(());
    }
    if env::var_os("LSMKV_GENERATE").is_some() {
        return fs::write(&path, fresh).map_err(|e| format!("write {}: {e}", path.display()));
    }
    Err(format!("{name} does not match its source any more: run `make generate` and commit it"))
}

fn header(root: &Path) -> Result<String, String> {
    let mut config = cbindgen::Config::from_file(root.join("include/cbindgen.toml"))?;
    config.after_includes = config.after_includes.map(|text| with_version(&text));
    // Files rather than the crate: cbindgen would run `cargo metadata` to find those, which
    // fails in a build without network.
    let mut builder = cbindgen::Builder::new().with_config(config);
    let mut sections = Vec::new();
    for (title, files) in SECTIONS {
        let paths = files.iter().map(|file| root.join("src/ffi").join(file));
        let mut sources = Vec::new();
        for path in paths {
            sources
                .push(fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?);
            builder = builder.with_src(path);
        }
        sections.push(emit::Section { title, sources });
    }
    let bindings = builder.generate().map_err(|e| format!("cbindgen: {e}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|e| format!("cbindgen: {e}"))?;
    emit::with_sections(&text, &sections)
}

fn with_version(text: &str) -> String {
    text.replace("@VERSION@", &variable("CARGO_PKG_VERSION"))
        .replace("@MAJOR@", &variable("CARGO_PKG_VERSION_MAJOR"))
        .replace("@MINOR@", &variable("CARGO_PKG_VERSION_MINOR"))
        .replace("@PATCH@", &variable("CARGO_PKG_VERSION_PATCH"))
}

/// Cargo sets what is asked for here.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
