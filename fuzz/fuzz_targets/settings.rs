//! See `toolwit_tests::fuzz::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwit_tests::fuzz::settings(data));
