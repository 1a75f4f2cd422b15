//! What the tests of the C ABI share: the library that cargo built, the compilers, and a record
//! of what had to be skipped.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use programs::{available, built, find_built, run, skip, text_of};

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The compiler for C, or for C++, that the `cc` crate finds.
pub(crate) fn compiler(cpp: bool) -> Command {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = cc::Build::new();
    build.cpp(cpp).target(&triple).host(&triple).opt_level(1).cargo_metadata(false);
    let tool = build.get_compiler();
    Command::new(tool.path())
}

/// A directory that holds the shared library under the name programs look for at run time.
pub(crate) fn library_path(scratch: &Path) -> PathBuf {
    let dir = scratch.join("lib");
    std::fs::create_dir_all(&dir).unwrap();
    for name in ["liblsmkv.so", "liblsmkv.so.0"] {
        let link = dir.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(built("liblsmkv.so"), link).unwrap();
        }
    }
    dir
}
