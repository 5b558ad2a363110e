//! Requests of a guest before a grant of one host: whatever the bytes, only that host, its port and its path are allowed.
#![no_main]

use toolwit::capability::{Access, Decision, Declared, Effective, Grants, RequestTarget, decide};

const GRANTS: &[u8] = br#"
version = 1
[[grant]]
plugin = "fuzz"
any-version = true
http = [{ host = "api.example.com", path = "/v1" }, { host = "*.example.org", scheme = "http", port = 8080 }]
"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut parts = data.split(|byte| *byte == b'\n').map(|part| String::from_utf8_lossy(part));
    let mut part = || parts.next().unwrap_or_default().into_owned();
    let (method, scheme, authority, path) = (part(), part(), part(), part());
    let _ = RequestTarget::parse(&authority);
    let Ok(target) = RequestTarget::new(&method, &scheme, &authority, &path) else { return };
    let grants = Grants::parse(GRANTS).expect("the grants are sound");
    let declared = Declared::from_imports(["wasi:http/outgoing-handler@0.2.6"]);
    let effective = Effective::new(&declared, &grants, "fuzz", "");
    if let Decision::Allowed { .. } = decide(&effective, &Access::Request(&target)) {
        let host = target.host.to_string();
        let exact = host == "api.example.com" && target.port == 443 && target.path.starts_with("/v1");
        let below = host.strip_suffix(".example.org").is_some_and(|name| !name.is_empty()) && target.port == 8080;
        assert!(exact || below, "{target:?}");
    }
});
