//! The programs in tests/c and tests/cpp, compiled against the shared and the static library and
//! run. Their stories are in the programs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Command;

use toolchain::{available, built, compiler, library_path, root, run, skip};

#[derive(Clone, Copy)]
enum Linked {
    Shared,
    Static,
}

fn compile(source: &str, scratch: &Path, linked: Linked, standard: &str) -> PathBuf {
    let program = scratch.join("program");
    let mut command = compiler(source.ends_with(".cpp"));
    command
        .args([standard, "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("bindings/cpp"))
        .arg(root().join("tests").join(source));
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

#[test]
fn strings_work_from_c_with_the_shared_library() {
    runs("c/strings.c", Linked::Shared, "-std=c99");
}

#[test]
fn strings_work_from_c_with_the_static_library() {
    runs("c/strings.c", Linked::Static, "-std=c99");
}

#[test]
fn misuse_from_c_is_answered_by_a_status() {
    runs("c/misuse.c", Linked::Shared, "-std=c99");
}

#[test]
fn locks_forks_and_kills_are_survived() {
    runs("c/processes.c", Linked::Shared, "-std=gnu99");
}

#[test]
fn threads_share_and_close_a_handle() {
    runs("c/threads.c", Linked::Shared, "-std=gnu99");
}

#[test]
fn the_cpp_binding_works_in_every_standard_it_promises() {
    if !available("g++") {
        return skip("c_abi::cpp", "there is no g++");
    }
    for standard in ["-std=c++17", "-std=c++20", "-std=c++23"] {
        runs("cpp/binding.cpp", Linked::Shared, standard);
    }
}

#[test]
fn the_python_binding_works() {
    if !available("python3") {
        return skip("c_abi::python", "there is no python3");
    }
    let mut command = Command::new("python3");
    command
        .args(["-m", "unittest", "discover", "-s", "tests/python", "-v"])
        .current_dir(root())
        .env("PYTHONPATH", root().join("bindings/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("LSMKV_LIBRARY", built("liblsmkv.so"));
    run(&mut command);
}
