//! JSON to WIT values and back: refused, or the same afterwards.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| toolwit::plugin::fuzz::values(data));
