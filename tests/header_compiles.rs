//! The header alone, included twice, under every C and C++ standard the compilers here know,
//! with pedantic errors.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod toolchain;

use std::process::Command;

use toolchain::{available, root, run, skip};

const C_STANDARDS: [&str; 5] = ["c89", "c99", "c11", "c17", "c2x"];
const CPP_STANDARDS: [&str; 7] = ["c++98", "c++03", "c++11", "c++14", "c++17", "c++20", "c++2b"];

const SOURCE: &str = "#include \"lsmkv.h\"\n#include \"lsmkv.h\"\n\
    lsmkv_status probe(lsmkv_db *db) { return lsmkv_sync(db, NULL); }\n\
    int main(void) { return probe(NULL) == LSMKV_MISUSE ? 0 : 1; }\n";

fn compiles_everywhere(compiler: &str, standards: &[&str], extension: &str) {
    if !available(compiler) {
        return skip(&format!("header_compiles::{compiler}"), "the compiler is not installed");
    }
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join(format!("probe.{extension}"));
    std::fs::write(&source, SOURCE).unwrap();
    for standard in standards {
        run(Command::new(compiler)
            .arg(format!("-std={standard}"))
            .args(["-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
            .arg(root().join("include"))
            .arg(&source));
    }
}

#[test]
fn with_gcc_as_c() {
    compiles_everywhere("gcc", &C_STANDARDS, "c");
}

#[test]
fn with_gcc_as_cpp() {
    compiles_everywhere("g++", &CPP_STANDARDS, "cpp");
}

#[test]
fn with_clang_as_c() {
    compiles_everywhere("clang", &C_STANDARDS, "c");
}

#[test]
fn with_clang_as_cpp() {
    compiles_everywhere("clang++", &CPP_STANDARDS, "cpp");
}
