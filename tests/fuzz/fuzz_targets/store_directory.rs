#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| lsmkv_fuzz::damage::store_directory(data));
