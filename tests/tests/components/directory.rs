//! Odd and broken files in a plugin directory.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use toolwit::Toolwit;
use toolwit::registry::Registry;
use toolwit::sandbox::CodeCacheLocation;

async fn scan(directory: &Path) -> Registry {
    let host = Toolwit::builder()
        .plugins(directory)
        .code_cache(CodeCacheLocation::Off)
        .build()
        .await;
    host.unwrap_or_else(|error| panic!("{error}")).registry().clone()
}

/// Returns the reason why the package with this name is broken; `None` if it is ready.
fn broken_reason(registry: &Registry, name: &str) -> Option<Error> {
    let package = registry.packages().iter().find(|package| package.name == name);
    package
        .unwrap_or_else(|| panic!("there is no package `{name}`"))
        .broken_reason()
        .cloned()
}

// attack: A1, attack: A18, attack: H3
#[tokio::test]
async fn broken_packages_are_listed_with_the_reason_and_affect_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let counter = component_of(include_str!("../../guests/wat/counter.wat"));
    fs::write(at("good.wasm"), &counter).unwrap();
    fs::write(at("empty.wasm"), b"").unwrap();
    fs::write(at("text.wasm"), b"not a component").unwrap();
    fs::write(at("zeros.wasm"), vec![0; 100_000]).unwrap();
    fs::File::create(at("sparse.wasm")).unwrap().set_len(10 << 30).unwrap();
    fs::create_dir(at("directory.wasm")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.wasm"), &counter).unwrap();
    symlink(outside.path().join("secret.wasm"), at("link-out.wasm")).unwrap();
    symlink(at("good.wasm"), at("link-in.wasm")).unwrap();
    symlink(at("loop.wasm"), at("loop.wasm")).unwrap();
    symlink(at("nowhere"), at("dangling.wasm")).unwrap();
    for name in ["policy", "capabilities"] {
        fs::write(at(&format!("{name}.wasm")), &counter).unwrap();
    }
    symlink(outside.path().join("secret.wasm"), at("policy.policy.yaml")).unwrap();
    symlink(outside.path().join("secret.wasm"), at("capabilities.capabilities.json")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff.wasm");
    fs::write(directory.path().join(odd), &counter).unwrap();
    fs::write(at("new\nline.wasm"), &counter).unwrap();
    fs::write(at(".hidden.wasm"), b"").unwrap();
    fs::write(at("backup.wasm~"), b"").unwrap();

    let registry = scan(directory.path()).await;
    assert!(broken_reason(&registry, "good").is_none());
    assert!(
        broken_reason(&registry, "link-in").is_none(),
        "a link within the directory is fine"
    );
    for (name, kind, expected) in [
        ("empty", ErrorKind::MalformedComponent, "too short"),
        ("text", ErrorKind::MalformedComponent, "magic number"),
        ("zeros", ErrorKind::MalformedComponent, "magic number"),
        ("sparse", ErrorKind::FileBytes, "it has 10 GiB and may have 128 MiB"),
        ("directory", ErrorKind::Io, "not a regular file"),
        ("link-out", ErrorKind::Io, "leads out"),
        ("policy", ErrorKind::Io, "leads out"),
        ("capabilities", ErrorKind::Io, "leads out"),
        ("loop", ErrorKind::Io, "could not be read"),
        ("dangling", ErrorKind::Io, "could not be read"),
        ("odd-\u{fffd}.wasm", ErrorKind::Configuration, "not valid Unicode"),
    ] {
        let error = broken_reason(&registry, name).unwrap_or_else(|| panic!("`{name}` is ready"));
        assert_eq!(error.kind, kind, "{name}: {error:#?}");
        assert!(error.message.contains(expected), "{name}: {error}");
        assert!(!error.message.contains('\n'), "{name}: {error}");
    }
    assert_eq!(registry.packages().len(), 14, "hidden files and backups are ignored");
}

// attack: H3
#[tokio::test]
async fn a_pipe_in_the_directory_does_not_block_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let created = std::process::Command::new("mkfifo")
        .arg(directory.path().join("pipe.wasm"))
        .status();
    if !created.is_ok_and(|status| status.success()) {
        return;
    }
    let registry = scan(directory.path()).await;
    assert!(
        broken_reason(&registry, "pipe")
            .unwrap()
            .message
            .contains("not a regular file")
    );
}

#[tokio::test]
async fn a_missing_directory_is_an_error_with_its_path() {
    let error = match Toolwit::builder()
        .plugins("/no/such/directory")
        .code_cache(CodeCacheLocation::Off)
        .build()
        .await
    {
        Ok(_) => panic!("a missing directory was scanned"),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(
        error.message.starts_with("/no/such/directory could not be read"),
        "{error}"
    );
}
