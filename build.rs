//! The linker flags of the shared library. The generated files are written by `codegen/`.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Plain cargo sets no SONAME. Without nodelete, a thread that ends after dlclose would run
    // destructors that are no longer there.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        let major = env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblsmkv.so.{major}");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
