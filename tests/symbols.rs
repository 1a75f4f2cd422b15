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

#[cfg(feature = "scripting")]
use toolchain::run;
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

/// The names of Lua that a program which links the library could meet.
#[cfg(feature = "scripting")]
fn names_of_lua(archive: &std::path::Path) -> Vec<String> {
    let symbols = text_of(Command::new("nm").args(["--defined-only"]).arg(archive));
    let visible = symbols.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (kind, name) = (words.next()?, words.next()?);
        (kind.chars().all(char::is_uppercase) && name.starts_with("lua")).then(|| name.to_owned())
    });
    visible.collect()
}

/// A host may have a Lua of its own, of another version.
#[test]
#[cfg(feature = "scripting")]
fn a_program_with_a_lua_of_its_own_links_the_static_library() {
    if !available("objcopy") || !available("nm") {
        return skip("symbols::static_lua", "there is no objcopy or nm (binutils)");
    }
    let scratch = tempfile::tempdir().unwrap();
    let archive = scratch.path().join("liblsmkv.a");
    std::fs::copy(built("liblsmkv.a"), &archive).unwrap();
    assert!(!names_of_lua(&archive).is_empty(), "cargo hides nothing");
    run(Command::new(root().join("scripts/hide-lua.sh")).arg(&archive));
    assert_eq!(names_of_lua(&archive), [""; 0]);
    let program = scratch.path().join("program");
    run(toolchain::compiler(false)
        .args(["-std=gnu99", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("tests/installed/own_lua.c"))
        .arg(&archive)
        .args(["-lpthread", "-ldl", "-lm"]));
    run(&mut Command::new(program));
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
