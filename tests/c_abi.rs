//! The programs in tests/c and tests/cpp, compiled against the shared and the static library and
//! run. Their stories are in the programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "toolchain/declarations.rs"]
#[allow(dead_code, reason = "only names are asked for")]
mod declarations;
mod toolchain;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use declarations::declarations;
use toolchain::{available, built, compiler, library_path, root, run, skip};

#[derive(Clone, Copy)]
enum Linked {
    Shared,
    Static,
}

/// The frame of the programs has functions that not every one uses.
fn compile(source: &str, scratch: &Path, linked: Linked, standard: &str) -> PathBuf {
    let program = scratch.join("program");
    let cpp = source.ends_with(".cpp");
    let mut command = compiler(cpp);
    command
        .args([standard, "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"])
        // Templates take long to optimise.
        .args([if cpp { "-O0" } else { "-O1" }, "-g", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("bindings/cpp"))
        .arg(root().join("tests").join(source));
    if !cfg!(feature = "scripting") {
        command.arg("-DWITHOUT_SCRIPTS");
    }
    if !cfg!(feature = "server") {
        command.arg("-DWITHOUT_SERVER");
    }
    if !cfg!(all(feature = "remote", feature = "server")) {
        command.arg("-DWITHOUT_SHARED");
    }
    if !cfg!(feature = "remote") {
        command.arg("-DWITHOUT_REMOTE");
    }
    match linked {
        Linked::Shared => command.arg("-L").arg(library_path(scratch)).arg("-llsmkv"),
        Linked::Static => command.arg(built("liblsmkv.a")),
    };
    run(command.args(["-lpthread", "-ldl", "-lm"]));
    program
}

fn runs(source: &str, linked: Linked, standard: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let program = compile(source, scratch.path(), linked, standard);
    let mut command = Command::new(program);
    command
        .arg(scratch.path().join("stores"))
        .env("LD_LIBRARY_PATH", library_path(scratch.path()))
        .env("LSMKV_TEST_LIBRARY", built("liblsmkv.so"));
    print!("{}", String::from_utf8_lossy(&run(&mut command).stdout));
}

/// What is the same however the library is linked. The others load it, fork or take long.
const ANY_LINKAGE: [&str; 16] = [
    "strings",
    "misuse",
    "values",
    "hashes",
    "lists",
    "sets",
    "zsets",
    "keys",
    "commands",
    "scripts",
    "handles",
    "messages",
    "damage",
    "processes",
    "serving",
    "shared",
];

/// The programs of [`ANY_LINKAGE`] for what the library was built with.
fn programs() -> impl Iterator<Item = &'static str> {
    ANY_LINKAGE.into_iter().filter(|name| cfg!(feature = "scripting") || *name != "scripts")
}

#[test]
fn every_program_in_c_passes_with_the_shared_library() {
    for name in programs() {
        runs(&format!("c/{name}.c"), Linked::Shared, "-std=gnu99");
    }
}

#[test]
fn every_program_in_c_passes_with_the_static_library() {
    for name in programs() {
        runs(&format!("c/{name}.c"), Linked::Static, "-std=gnu99");
    }
}

#[test]
fn threads_share_and_close_handles_and_load_and_unload_the_library() {
    runs("c/threads.c", Linked::Shared, "-std=gnu99");
}

#[test]
fn opening_and_closing_for_ever_costs_nothing() {
    runs("c/resources.c", Linked::Shared, "-std=gnu99");
}

#[test]
fn every_function_is_called_by_a_program_that_checks_its_result() {
    let header = std::fs::read_to_string(root().join("include/lsmkv.h")).unwrap();
    let mut programs = String::new();
    for name in ANY_LINKAGE {
        let path = root().join(format!("tests/c/{name}.c"));
        programs += &std::fs::read_to_string(path).unwrap();
    }
    let called = |name: &str| programs.contains(&format!("{name}("));
    let missing: Vec<_> =
        declarations(&header).into_iter().map(|it| it.name).filter(|name| !called(name)).collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

const CPP: [&str; 3] = ["binding", "commands", "handles"];

#[test]
fn every_program_in_cpp_passes_with_the_shared_library() {
    if !available("g++") {
        return skip("c_abi::cpp", "there is no g++");
    }
    for name in CPP {
        runs(&format!("cpp/{name}.cpp"), Linked::Shared, "-std=c++17");
    }
}

#[test]
fn every_program_in_cpp_passes_with_the_static_library() {
    if !available("g++") {
        return skip("c_abi::cpp_static", "there is no g++");
    }
    for name in CPP {
        runs(&format!("cpp/{name}.cpp"), Linked::Static, "-std=c++20");
    }
}

/// One program suffices: it instantiates every method.
fn compiles_without_a_warning(compiler: &str) {
    if !available(compiler) {
        return skip(&format!("c_abi::{compiler}"), "the compiler is not installed");
    }
    for standard in ["-std=c++17", "-std=c++20", "-std=c++2b"] {
        let mut command = Command::new(compiler);
        command
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-function"])
            .args(["-fsyntax-only", "-I"])
            .arg(root().join("include"))
            .arg("-I")
            .arg(root().join("bindings/cpp"))
            .arg(root().join("tests/cpp/binding.cpp"));
        run(&mut command);
    }
}

#[test]
fn the_cpp_binding_compiles_in_every_standard_it_promises_with_gcc() {
    compiles_without_a_warning("g++");
}

#[test]
fn the_cpp_binding_compiles_in_every_standard_it_promises_with_clang() {
    compiles_without_a_warning("clang++");
}

#[test]
fn every_method_of_the_cpp_binding_is_called_by_a_program() {
    let text = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let programs = CPP.map(|name| text(&format!("tests/cpp/{name}.cpp"))).concat();
    let header = text("bindings/cpp/lsmkv/commands.hpp");
    // Every method calls its form with `try_`.
    let defined = header.split("        try_").chain(header.split("return try_"));
    let defined: BTreeSet<_> =
        defined.filter_map(|rest| rest.split_once('(')).map(|it| it.0).collect();
    let defined: Vec<_> = defined.into_iter().filter(|name| !name.contains(' ')).collect();
    assert!(defined.len() > 150, "{defined:?}");
    let missing: Vec<_> =
        defined.iter().filter(|name| !programs.contains(&format!(".{name}("))).collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}

#[test]
fn the_python_binding_works() {
    if !available("python3") {
        return skip("c_abi::python", "there is no python3");
    }
    let mut command = Command::new("python3");
    command
        // The package's other tests need more than Python: scripts/test.sh runs them all.
        .args(["-m", "unittest", "discover", "-s", "tests/python", "-p", "test_binding.py", "-v"])
        .current_dir(root())
        .env("PYTHONPATH", root().join("bindings/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LSMKV_LIBRARY", built("liblsmkv.so"));
    run(&mut command);
}
