//! Every exported function with every argument wrong in turn, and on every kind of handle. The C
//! program is tests/c/hostile.c; its table of functions is made here from the header.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

#[path = "toolchain/declarations.rs"]
mod declarations;
mod toolchain;

use std::path::Path;
use std::process::Command;

use declarations::{Declaration, declarations};
use toolchain::{compiler, library_path, root, run};

/// The argument in C and its letter in the table; `i` is its index.
fn argument(parameters: &[(String, String)], i: usize) -> (String, char) {
    let (kind, name) = (parameters[i].0.as_str(), parameters[i].1.as_str());
    let before = i.checked_sub(1).map_or("", |i| parameters[i].0.as_str());
    let given = |data: &str| format!("input(wrong, {i}, {data})");
    match (kind, name) {
        ("lsmkv_db *", _) => ("db".into(), 'h'),
        ("lsmkv_err *", _) => ("err".into(), 'e'),
        ("const void *", "cursor") => (given("\"\""), 'o'),
        ("const void *", "commands") => (given("PACKED"), 'b'),
        ("const void *", "destination" | "newkey") => (given("\"d\""), 'b'),
        ("const void *", "key" | "key1" | "key2" | "source") => (given("\"k\""), 'b'),
        ("const void *", _) => (given("\"m\""), 'b'),
        ("size_t", "len") => (format!("length(wrong, {i}, sizeof PACKED - 1)"), 'l'),
        ("size_t", _) if i > 0 && parameters[i - 1].1 == "cursor" => {
            (format!("length(wrong, {i}, 0)"), 'l')
        }
        ("size_t", "argc") => (format!("length(wrong, {i}, 2)"), 'n'),
        ("size_t", "hard_bytes" | "soft_bytes") => ("1 << 20".into(), 'v'),
        ("size_t", "cap") => ("sizeof place[0]".into(), 'v'),
        ("size_t", _) if before == "const void *" => (format!("length(wrong, {i}, 1)"), 'l'),
        ("size_t", _) => (format!("length(wrong, {i}, 1)"), 'n'),
        ("const lsmkv_slice *", "keys" | "items" | "pairs" | "get") => (given("SLICES"), 's'),
        ("const lsmkv_slice *", _) => (given("SLICES + 1"), 'o'),
        ("const double *", "weights") => (given("NUMBERS"), 'o'),
        ("const double *", _) => (given("NUMBERS"), 's'),
        ("const lsmkv_bitfield_op *", _) => (given("OPS"), 's'),
        ("const uint8_t *const *", _) => (format!("wrong->null == {i} ? NULL : ARGV"), 's'),
        ("const size_t *", _) => (given("LENS"), 's'),
        ("const lsmkv_options *", _) => ("NULL".to_owned(), 'v'),
        ("const char *", "mode") => (given("\"off\""), 's'),
        ("const char *", _) => (given("\"/dev/null/no\""), 's'),
        ("int64_t", "offset" | "start" | "minmatchlen" | "limit") => ("0".into(), 'v'),
        ("int64_t", "ttl_ms" | "ms" | "seconds" | "milliseconds") => ("60000".into(), 'v'),
        ("int64_t" | "uint64_t" | "double", _) => ("1".into(), 'v'),
        ("uint32_t", "database" | "second" | "number") => ("1".into(), 'v'),
        ("uint32_t" | "int32_t", _) => ("0".into(), 'v'),
        ("void *", _) => (format!("wrong->null == {i} ? NULL : &place[{i}]"), 's'),
        (out, _) if out.ends_with('*') => {
            (format!("wrong->null == {i} ? NULL : (void *)&place[{i}]"), 'O')
        }
        _ => panic!("no argument for {kind} {name}"),
    }
}

/// What frees an output, and its size.
fn output(kind: &str, i: usize) -> (String, String) {
    let pointer = format!("place[{i}].pointer");
    match kind {
        "lsmkv_buf *" => {
            (format!("lsmkv_buf_release(&place[{i}].buf);"), "sizeof(lsmkv_buf)".into())
        }
        "lsmkv_reply **" => (format!("lsmkv_reply_free({pointer});"), "sizeof(void *)".into()),
        "lsmkv_db **" => (format!("lsmkv_close({pointer}, NULL);"), "sizeof(void *)".into()),
        "lsmkv_server **" => {
            (format!("lsmkv_server_stop({pointer}, NULL);"), "sizeof(void *)".into())
        }
        "lsmkv_iter **" => (format!("lsmkv_iter_free({pointer});"), "sizeof(void *)".into()),
        scalar => (String::new(), format!("sizeof({})", scalar.trim_end_matches(" *"))),
    }
}

fn wrapper(function: &Declaration) -> String {
    let Declaration { name, parameters, .. } = function;
    let count = parameters.len();
    let arguments: Vec<_> = (0..count).map(|i| argument(parameters, i)).collect();
    let given: Vec<_> = arguments.iter().map(|(text, _)| text.as_str()).collect();
    let mut text = format!(
        "static lsmkv_status call_{name}(lsmkv_db *db, const struct wrong *wrong, lsmkv_err *err) {{\n\
         \x20   union place place[{count}];\n    lsmkv_status st;\n    int i;\n\
         \x20   for (i = 0; i < {count}; i++) spoil(&place[i]);\n    (void)wrong;\n\
         \x20   st = {name}({});\n",
        given.join(", ")
    );
    for (i, (_, letter)) in arguments.iter().enumerate() {
        if *letter == 'O' {
            let (free, size) = output(&parameters[i].0, i);
            if parameters[i].1 == "fd" {
                // 0 is a descriptor, so that none is -1.
                text += &format!(
                    "    if (wrong->null != {i} && st != LSMKV_OK && *(int32_t *)&place[{i}] == -1)\n\
                     \x20       memset(&place[{i}], 0, {size});\n"
                );
            }
            text += &format!(
                "    if (wrong->null != {i}) {{ expect_empty(&place[{i}], {size}, st); {free} }}\n"
            );
        }
    }
    text + "    return st;\n}\n"
}

fn table(functions: &[Declaration]) -> String {
    let mut text: String = functions.iter().map(wrapper).collect();
    text += "static const struct function TABLE[] = {\n";
    for function in functions {
        let letters = (0..function.parameters.len()).map(|i| argument(&function.parameters, i).1);
        let (name, letters) = (&function.name, letters.collect::<String>());
        text += &format!("    {{\"{name}\", \"{letters}\", call_{name}}},\n");
    }
    text + "};\n"
}

/// Those that work on a handle and do not end it.
fn functions() -> Vec<Declaration> {
    let header = std::fs::read_to_string(root().join("include/lsmkv.h")).unwrap();
    let works_on_a_handle = |function: &Declaration| {
        function.parameters.first().is_some_and(|(kind, _)| kind == "lsmkv_db *")
            && function.name != "lsmkv_close"
    };
    declarations(&header).into_iter().filter(works_on_a_handle).collect()
}

fn hostile_program(scratch: &Path, flags: &[&str]) {
    let functions = functions();
    assert!(functions.len() > 180, "only {} functions were found", functions.len());
    std::fs::write(scratch.join("table.inc"), table(&functions)).unwrap();
    let program = scratch.join("program");
    run(compiler(false)
        .args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1", "-g"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(scratch)
        .arg(root().join("tests/c/hostile.c"))
        .arg("-L")
        .arg(library_path(scratch))
        .arg("-llsmkv"));
    let said = run(Command::new(program)
        .arg(scratch.join("stores"))
        .env("LD_LIBRARY_PATH", library_path(scratch)));
    print!("{}", String::from_utf8_lossy(&said.stdout));
}

#[test]
fn no_wrong_argument_and_no_wrong_handle_does_harm() {
    hostile_program(tempfile::tempdir().unwrap().path(), &[]);
}

#[test]
fn nor_does_one_under_the_address_and_undefined_behaviour_sanitizers() {
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover"];
    hostile_program(tempfile::tempdir().unwrap().path(), &flags);
}
