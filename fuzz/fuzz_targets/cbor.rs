//! See `toolwit_tests::fuzz::cbor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwit_tests::fuzz::cbor(data));
