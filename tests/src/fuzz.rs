//! Entry points of the fuzzers: each takes arbitrary bytes, and panics if the host violates a property.
//!
//! The fuzzers in `fuzz/` run them guided by coverage; `tests/fuzz` runs a limited number of mutants of the seeds with the
//! tests.

#[cfg(unix)]
use std::sync::OnceLock;

#[cfg(unix)]
use tempfile::TempDir;
use toolwit::grants::{AccessRequest, Decision, DeclaredCapabilities, EffectiveRights, Grants, RequestTarget, decide};
use toolwit::limits::LimitOverrides;
use toolwit::registry::{Manifest, Project, ProjectLimits};
use toolwit::sandbox::{Inspection, PackageContext};

/// Decodes JSON to WIT values and encodes them again. Valid JSON must be unchanged.
pub fn values(data: &[u8]) {
    toolwit::sandbox::fuzz::values(data);
}

/// Decodes CBOR to JSON, as a component of ACT returns it, and encodes it again.
pub fn cbor(data: &[u8]) {
    toolwit::sandbox::fuzz::cbor(data);
}

/// Inspects bytes as a component. The cached inspection of a valid component must have the same tools.
pub fn component(data: &[u8]) {
    let context = PackageContext {
        name: "fuzz",
        adjacent_wit: None,
    };
    let Ok(inspection) = Inspection::from_bytes(data, context) else {
        return;
    };
    let restored =
        Inspection::from_cache_text(&inspection.to_cache_text(), "fuzz").expect("a cached inspection can be read");
    let names = |inspection: &Inspection| -> Vec<String> {
        let tools = inspection.tools.iter();
        tools.map(|tool| tool.id.to_string()).collect()
    };
    assert_eq!(names(&inspection), names(&restored));
}

/// The links of [`directories`], with their targets.
#[cfg(unix)]
const LINKS: [(&str, &str); 5] = [
    ("link", "work"),
    ("deep", "work/in/deep"),
    ("work/out", "outside"),
    ("work/in/up", "outside"),
    ("work/in/round", "work"),
];

/// Opens granted directories in a small tree with links, one rule per line, and decides on an access to the path in the last
/// line.
#[cfg(unix)]
pub fn directories(data: &[u8]) {
    static TREE: OnceLock<TempDir> = OnceLock::new();
    let tree = TREE.get_or_init(|| {
        let tree = tempfile::tempdir().expect("a directory can be created");
        for directory in ["work/in/deep", "outside", "other"] {
            std::fs::create_dir_all(tree.path().join(directory)).expect("a directory can be created");
        }
        for (link, target) in LINKS {
            let target = tree.path().join(target);
            std::os::unix::fs::symlink(target, tree.path().join(link)).expect("a link can be created");
        }
        tree
    });
    toolwit::sandbox::fuzz::directories(tree.path(), &LINKS, data);
}

/// Parses configuration files: manifests and projects, which are untrusted, and grants, which may contain mistakes. A project
/// never raises a limit of calls by itself.
pub fn settings(data: &[u8]) {
    let _ = Grants::parse(data);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Manifest::parse(text, "fuzz.toml");
        if let Ok(project) = Project::parse(text) {
            let limits = project.limits().of_calls(&ProjectLimits::default());
            assert_eq!(limits, limits.within(&LimitOverrides::default()));
        }
    }
}

/// The grants of [`gate`].
const GRANTS: &[u8] = br#"
version = 1
[[grant]]
plugin = "fuzz"
any-version = true
http = [{ host = "api.example.com", path = "/v1" }, { host = "*.example.org", scheme = "http", port = 8080 }]
"#;

/// Checks requests against a grant of two hosts, one part of the request per line: only the granted hosts, ports and paths are
/// allowed.
pub fn gate(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let mut part = || parts.next().unwrap_or_default().into_owned();
    let (method, scheme, authority, path) = (part(), part(), part(), part());
    let _ = RequestTarget::parse(&authority);
    let Ok(target) = RequestTarget::new(&method, &scheme, &authority, &path) else {
        return;
    };
    let grants = Grants::parse(GRANTS).expect("the grants are valid");
    let declared = DeclaredCapabilities::from_imports(["wasi:http/outgoing-handler@0.2.6"]);
    let effective = EffectiveRights::new(&declared, &grants, "fuzz", "");
    if let Decision::Allowed { .. } = decide(&effective, &AccessRequest::Http(&target)) {
        let host = target.host.to_string();
        let is_api = host == "api.example.com" && target.port == 443 && target.path.starts_with("/v1");
        let is_subdomain =
            host.strip_suffix(".example.org").is_some_and(|name| !name.is_empty()) && target.port == 8080;
        assert!(is_api || is_subdomain, "{target:?}");
    }
}
