//! See `toolwit_tests::fuzz::directories`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwit_tests::fuzz::directories(data));
