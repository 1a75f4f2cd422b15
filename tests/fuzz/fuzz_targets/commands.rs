#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| lsmkv_fuzz::pairs::commands(data));
