//! What fuzzers call: each takes any bytes, and panics when the host does what it must not.
//!
//! The fuzzers of `fuzz/` steer them by coverage for as long as one likes; `tests/fuzz` runs a bounded number of mutants of the
//! seeds in every test run.

use toolwit::grants::{Access, Decision, Declared, Effective, Grants, RequestTarget, decide};
use toolwit::registry::Manifest;
use toolwit::sandbox::{Inspection, Origin};

/// JSON to WIT values and back: refused, or the same afterwards.
pub fn values(data: &[u8]) {
    toolwit::sandbox::fuzz::values(data);
}

/// A stranger's bytes as a component: what is known of it is kept and restored as the same, or it is refused.
pub fn component(data: &[u8]) {
    let origin = Origin {
        name: "fuzz",
        adjacent_wit: None,
    };
    let Ok(inspection) = Inspection::from_bytes(data, origin) else {
        return;
    };
    let restored = Inspection::from_cache_text(&inspection.to_cache_text(), "fuzz").expect("what was kept can be read");
    let names = |inspection: &Inspection| -> Vec<String> {
        let tools = inspection.tools.iter();
        tools.map(|tool| tool.id.to_string()).collect()
    };
    assert_eq!(names(&inspection), names(&restored));
}

/// Files that people write: manifests, which a stranger may have written, and grants, which an operator may have got wrong.
pub fn settings(data: &[u8]) {
    let _ = Grants::parse(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Manifest::parse(text, "fuzz.toml");
    }
}

/// What the gate of [`gate`] is given.
const GRANTS: &[u8] = br#"
version = 1
[[grant]]
plugin = "fuzz"
any-version = true
http = [{ host = "api.example.com", path = "/v1" }, { host = "*.example.org", scheme = "http", port = 8080 }]
"#;

/// Requests of a guest, one part a line, before a grant of two hosts: whatever the bytes, only those, their ports and their
/// paths are allowed.
pub fn gate(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let mut part = || parts.next().unwrap_or_default().into_owned();
    let (method, scheme, authority, path) = (part(), part(), part(), part());
    let _ = RequestTarget::parse(&authority);
    let Ok(target) = RequestTarget::new(&method, &scheme, &authority, &path) else {
        return;
    };
    let grants = Grants::parse(GRANTS).expect("the grants are sound");
    let declared = Declared::from_imports(["wasi:http/outgoing-handler@0.2.6"]);
    let effective = Effective::new(&declared, &grants, "fuzz", "");
    if let Decision::Allowed { .. } = decide(&effective, &Access::Request(&target)) {
        let host = target.host.to_string();
        let exact = host == "api.example.com" && target.port == 443 && target.path.starts_with("/v1");
        let below = host.strip_suffix(".example.org").is_some_and(|name| !name.is_empty()) && target.port == 8080;
        assert!(exact || below, "{target:?}");
    }
}
