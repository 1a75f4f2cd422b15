//! A second Rust library in a program that links liblsmkv.a: both bring Rust's standard library.

/// The sum of the numbers below `n`, by a thread of the standard library.
#[unsafe(no_mangle)]
pub extern "C" fn second_library_sum(n: i32) -> i32 {
    let numbers: Vec<i32> = (0..n).collect();
    std::thread::spawn(move || numbers.iter().sum()).join().unwrap_or(-1)
}
