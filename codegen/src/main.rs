//! Writes every generated file of the repository from the command schema:
//! `cargo run -p lsmkv-codegen`, which `make generate` runs. With `--check` it only compares.
//!
//! `schema` (src/commands/schema) is lowered to `ir`, the functions of the C ABI with everything
//! the emitters need. Every emitter works from the IR; none reads the output of another.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod check;
mod emit;
mod ir;
#[allow(unreachable_pub, reason = "public types of the library")]
#[path = "../../src/commands/schema/mod.rs"]
mod schema;
mod source;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let check = env::args().any(|arg| arg == "--check");
    match run(&root(), check) {
        Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
        Ok(stale) => {
            eprintln!("stale: {}\nrun `make generate` and commit the files", stale.join(", "));
            ExitCode::FAILURE
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes the files that differ, or with `check` returns their names.
fn run(root: &Path, check: bool) -> Result<Vec<String>, String> {
    let mut stale = Vec::new();
    for (name, fresh) in emit::rust_files(root)? {
        update(root, name, &fresh, check, &mut stale)?;
    }
    // The header is made from the Rust files, so those must be current.
    if stale.is_empty() {
        for (name, fresh) in emit::other_files(root)? {
            update(root, name, &fresh, check, &mut stale)?;
        }
    }
    Ok(stale)
}

fn update(
    root: &Path,
    name: String,
    fresh: &str,
    check: bool,
    stale: &mut Vec<String>,
) -> Result<(), String> {
    let path = root.join(&name);
    if fs::read_to_string(&path).is_ok_and(|old| old == fresh) {
        return Ok(());
    }
    if check {
        stale.push(name);
        return Ok(());
    }
    println!("wrote {name}");
    fs::write(&path, fresh).map_err(|e| format!("{name}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_function_named_like_it() {
        for described in ir::families().unwrap_or_default().iter().flat_map(|it| &it.commands) {
            let base = format!("lsmkv_{}", described.command.name.to_ascii_lowercase());
            // Libraries of functions are loaded by name: `lsmkv_command` of FUNCTION LOAD.
            let by_name = described.command.name == "FUNCTION";
            assert!(by_name || !described.functions.is_empty(), "{base}");
            assert!(described.functions.iter().all(|it| it.name.starts_with(&base)), "{base}");
        }
    }

    #[test]
    fn generated_files_are_current() {
        let stale = run(&root(), true).unwrap_or_else(|problem| vec![problem]);
        assert!(stale.is_empty(), "{stale:?}: run `make generate` and commit the files");
    }
}
