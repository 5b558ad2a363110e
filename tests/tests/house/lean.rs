//! The dependencies of services that use only a part of Toolwit, as `cargo tree` reports them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Returns the names of the crates that a crate depends on, without those of its tests.
fn dependencies(package: &str, arguments: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--package", package])
        .args(arguments);
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed: {errors}");
    let listing = String::from_utf8_lossy(&output.stdout);
    let names = listing.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

/// Returns the crates with one of these names, or with one of them as the first part.
fn crates_among(dependencies: &BTreeSet<String>, names: &[&str]) -> Vec<String> {
    let is_one = |krate: &&String| {
        names
            .iter()
            .any(|name| krate.as_str() == *name || krate.starts_with(&format!("{name}-")))
    };
    dependencies.iter().filter(is_one).cloned().collect()
}

/// Crates of WebAssembly engines and formats.
const WEBASSEMBLY: &[&str] = &["wasmtime", "wasmparser", "wasm", "wit", "cranelift", "toolwit-sandbox"];

/// Crates that open network connections or databases.
const NETWORK_AND_STORE: &[&str] = &[
    "reqwest",
    "rustls",
    "tokio-rustls",
    "hyper-util",
    "rusqlite",
    "libsqlite3-sys",
    "notify",
];

#[test]
fn the_loop_does_not_know_webassembly() {
    for package in ["toolwit-core", "toolwit-agent"] {
        let dependencies = dependencies(package, &[]);
        assert!(dependencies.contains("tokio"), "{package}: {dependencies:?}");
        assert_eq!(crates_among(&dependencies, WEBASSEMBLY), [""; 0], "{package}");
        assert_eq!(crates_among(&dependencies, NETWORK_AND_STORE), [""; 0], "{package}");
        assert_eq!(crates_among(&dependencies, &["clap"]), [""; 0], "{package}");
    }
}

#[test]
fn the_sandbox_alone_has_no_http_client_and_no_database() {
    let dependencies = dependencies("toolwit-sandbox", &[]);
    assert!(dependencies.contains("wasmtime"));
    assert_eq!(crates_among(&dependencies, NETWORK_AND_STORE), [""; 0]);
    assert_eq!(
        crates_among(&dependencies, &["toolwit-agent", "toolwit-registry", "clap"]),
        [""; 0]
    );
}

#[test]
fn only_the_command_parses_arguments() {
    let dependencies = dependencies("toolwit", &["--all-features"]);
    assert!(dependencies.contains("reqwest") && dependencies.contains("rusqlite"));
    assert_eq!(crates_among(&dependencies, &["clap", "indicatif"]), [""; 0]);
}

#[test]
fn a_macro_without_its_feature_names_the_feature() {
    let directory = tempfile::tempdir().expect("a directory can be created");
    let macros = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/macros");
    let manifest = format!(
        "[package]\nname = \"embedder\"\nedition = \"2024\"\n[workspace]\n[dependencies]\ntoolwit-macros = {{ path = '{}' }}\n",
        macros.display()
    );
    std::fs::create_dir(directory.path().join("src")).expect("a directory can be created");
    std::fs::write(directory.path().join("Cargo.toml"), manifest).expect("a file can be written");
    let source = "#[toolwit_macros::tool]\npub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n";
    std::fs::write(directory.path().join("src/lib.rs"), source).expect("a file can be written");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(directory.path())
        .args(["check", "--offline", "--quiet", "--target-dir", "target"]);
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("needs the feature `macros`"),
        "{errors}"
    );
}
