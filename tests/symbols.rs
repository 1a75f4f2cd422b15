//! What the shared library exports: the functions of the header, and the committed list, which
//! makes every change of the ABI a change of a file that a reviewer sees.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod toolchain;

use std::collections::BTreeSet;
use std::process::Command;

use toolchain::{available, built, root, skip, text_of};

fn exported() -> BTreeSet<String> {
    let symbols =
        text_of(Command::new("nm").args(["-D", "--defined-only"]).arg(built("liblsmkv.so")));
    symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
}

/// Names before a parenthesis, outside comments and macros.
fn declared(header: &str) -> BTreeSet<String> {
    let mut functions = BTreeSet::new();
    let mut in_comment = false;
    for line in header.lines() {
        in_comment |= line.trim_start().starts_with("/*");
        if !in_comment
            && let Some((before, _)) = line.split_once('(')
            && let Some(name) = before.split([' ', '*']).next_back()
            && name.starts_with("lsmkv_")
        {
            functions.insert(name.to_owned());
        }
        in_comment &= !line.contains("*/");
    }
    functions
}

fn listed() -> BTreeSet<String> {
    let list = std::fs::read_to_string(root().join("tests/testdata/symbols.txt")).unwrap();
    list.lines().map(str::to_owned).collect()
}

#[test]
fn the_header_declares_exactly_the_listed_functions() {
    let header = std::fs::read_to_string(root().join("include/lsmkv.h")).unwrap();
    assert_eq!(declared(&header), listed());
}

#[test]
fn the_library_exports_exactly_the_listed_functions() {
    if !available("nm") {
        return skip("symbols::exports", "there is no nm (binutils)");
    }
    assert_eq!(exported(), listed());
}

#[test]
fn the_library_has_a_soname_and_is_never_unloaded() {
    if !available("readelf") {
        return skip("symbols::dynamic_section", "there is no readelf (binutils)");
    }
    let dynamic = text_of(Command::new("readelf").args(["-d", "-W"]).arg(built("liblsmkv.so")));
    assert!(dynamic.contains("soname: [liblsmkv.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
}
