//! Two jobs: the linker flags of the shared library, and the generated files.
//!
//! `include/lsmkv.h` is generated from `src/ffi`, the dispatch of commands and docs/COMMANDS.md
//! from the command table; all are committed. A build only compares, and fails with advice when
//! one is stale: a build that rewrote it would hide that from CI. With
//! LSMKV_GENERATE set (`make generate`) it is written instead.

use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "src/commands/emit.rs"]
mod emit;
#[path = "src/commands/spec.rs"]
mod spec;
#[path = "src/commands/table/mod.rs"]
mod table;

/// In the order in which their functions appear in the header.
const SOURCES: [&str; 8] = [
    "version.rs",
    "status.rs",
    "err.rs",
    "buffer.rs",
    "options.rs",
    "handle.rs",
    "db.rs",
    "upkeep.rs",
];

fn main() {
    link_flags();
    println!("cargo::rerun-if-env-changed=LSMKV_GENERATE");
    for path in ["build.rs", "src/ffi", "src/commands", "include", "docs", "Cargo.toml"] {
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
    compare(root, "include/lsmkv.h", header(root)?)?;
    // A published package has no docs.
    if root.join("docs").exists() {
        compare(root, "docs/COMMANDS.md", emit::documentation(table::GROUPS))?;
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
    for source in SOURCES {
        builder = builder.with_src(root.join("src/ffi").join(source));
    }
    let bindings = builder.generate().map_err(|e| format!("cbindgen: {e}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    String::from_utf8(text).map_err(|e| format!("cbindgen: {e}"))
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
