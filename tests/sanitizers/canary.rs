//! Bugs that a sanitizer must report (scripts/sanitizers.sh): it is compiled by itself, and its
//! argument names the sanitizer.

use std::hint::black_box;
use std::thread;

static mut SHARED: u64 = 0;

fn use_after_free() {
    let freed = {
        let block = black_box(vec![7u8; 100]);
        block.as_ptr()
    };
    // SAFETY: none, the block is gone.
    println!("{}", unsafe { black_box(freed).read() });
}

fn data_race() {
    let add = || {
        for _ in 0..100_000 {
            // SAFETY: none, both threads write it.
            unsafe { black_box(&raw mut SHARED).write(black_box(&raw mut SHARED).read() + 1) };
        }
    };
    let other = thread::spawn(add);
    add();
    other.join().unwrap();
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("address") => use_after_free(),
        Some("thread") => data_race(),
        other => panic!("no sanitizer {other:?}"),
    }
}
