//! See `toolwit_tests::fuzz::component`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwit_tests::fuzz::component(data));
