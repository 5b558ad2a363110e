//! Files that people write: manifests, which a stranger may have written, and grants, which an operator may have got wrong.
#![no_main]

use toolwit::capability::Grants;
use toolwit::registry::Manifest;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = Grants::parse(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Manifest::parse(text, "fuzz.toml");
    }
});
