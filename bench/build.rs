//! Finds RocksDB's shared library, so that the bench builds with or without it, and notes the
//! versions of the peers for the report.

#![allow(clippy::print_stdout, reason = "printing is how a build script talks to cargo")]

use std::path::Path;
use std::process::Command;

const HEADERS: [&str; 2] = ["/usr/include/rocksdb/c.h", "/usr/local/include/rocksdb/c.h"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_rocksdb)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LSMKV_BENCH_NO_ROCKSDB");
    link_rocksdb();
    note_locked_versions();
}

fn link_rocksdb() {
    if std::env::var_os("LSMKV_BENCH_NO_ROCKSDB").is_some() {
        return;
    }
    let header = HEADERS.iter().find(|header| Path::new(header).exists());
    let version = pkg_config(&["--modversion", "rocksdb"]);
    if header.is_none() && version.is_none() {
        // Cargo reruns this script while a watched file is missing, so a later install is seen.
        println!("cargo::rerun-if-changed={}", HEADERS.first().unwrap_or(&"rocksdb/c.h"));
        return;
    }
    if let Some(header) = header {
        println!("cargo::rerun-if-changed={header}");
    }
    for flag in pkg_config(&["--libs-only-L", "rocksdb"]).unwrap_or_default().split_whitespace() {
        println!("cargo::rustc-link-search=native={}", flag.trim_start_matches("-L"));
    }
    println!("cargo::rustc-link-lib=rocksdb");
    println!("cargo::rustc-cfg=has_rocksdb");
    let version = version.unwrap_or_else(|| "of unknown version".to_owned());
    println!("cargo::rustc-env=ROCKSDB_VERSION={version}");
}

fn pkg_config(arguments: &[&str]) -> Option<String> {
    let output = Command::new("pkg-config").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn note_locked_versions() {
    println!("cargo::rerun-if-changed=../Cargo.lock");
    let lock = std::fs::read_to_string("../Cargo.lock").unwrap_or_default();
    for (package, variable) in [("fjall", "FJALL_VERSION"), ("heed", "HEED_VERSION")] {
        let version = locked_version(&lock, package).unwrap_or("of unknown version");
        println!("cargo::rustc-env={variable}={version}");
    }
}

fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, after) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    after.split('"').next()
}
