//! What the tests of the C ABI share: the library that cargo built, the compilers, and a record
//! of what had to be skipped.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use programs::{available, run, skip, text_of};

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file that cargo built beside this test: `liblsmkv.so` or `liblsmkv.a`. Found from the
/// test's own place, so any target directory and profile will do.
pub(crate) fn built(name: &str) -> PathBuf {
    find_built(name).unwrap_or_else(|| panic!("cargo has built no {name}"))
}

/// A file that cargo built beside this test, if it is there. The program `lsmkv` is there when cargo
/// tests its package too.
pub(crate) fn find_built(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    [deps, deps.parent().unwrap()].map(|dir| dir.join(name)).into_iter().find(|path| path.exists())
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
