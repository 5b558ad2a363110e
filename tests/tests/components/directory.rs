//! Odd and broken files in a plugin directory.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use toolwit::Toolwit;
use toolwit::registry::Registry;
use toolwit::sandbox::CodeCacheLocation;

async fn scan(place: &Path) -> Registry {
    let host = Toolwit::builder()
        .plugins(place)
        .code_cache(CodeCacheLocation::Off)
        .build()
        .await;
    host.unwrap_or_else(|error| panic!("{error}")).registry().clone()
}

/// Returns why the package of this name is broken; `None` if it is ready.
fn reason(registry: &Registry, name: &str) -> Option<Error> {
    let package = registry.packages().iter().find(|package| package.name == name);
    package
        .unwrap_or_else(|| panic!("there is no package `{name}`"))
        .reason()
        .cloned()
}

// attack: A1, attack: A18, attack: H3
#[tokio::test]
async fn what_is_broken_is_listed_with_its_reason_and_harms_no_other() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let counter = component_of(include_str!("../../guests/wat/counter.wat"));
    fs::write(at("good.wasm"), &counter).unwrap();
    fs::write(at("empty.wasm"), b"").unwrap();
    fs::write(at("text.wasm"), b"no component").unwrap();
    fs::write(at("zeros.wasm"), vec![0; 100_000]).unwrap();
    fs::File::create(at("sparse.wasm")).unwrap().set_len(10 << 30).unwrap();
    fs::create_dir(at("directory.wasm")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.wasm"), &counter).unwrap();
    symlink(outside.path().join("secret.wasm"), at("link-out.wasm")).unwrap();
    symlink(at("good.wasm"), at("link-in.wasm")).unwrap();
    symlink(at("loop.wasm"), at("loop.wasm")).unwrap();
    symlink(at("nowhere"), at("dangling.wasm")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff.wasm");
    fs::write(place.path().join(odd), &counter).unwrap();
    fs::write(at("new\nline.wasm"), &counter).unwrap();
    fs::write(at(".hidden.wasm"), b"").unwrap();
    fs::write(at("backup.wasm~"), b"").unwrap();

    let registry = scan(place.path()).await;
    assert!(reason(&registry, "good").is_none());
    assert!(
        reason(&registry, "link-in").is_none(),
        "a link within the directory is fine"
    );
    for (name, kind, told) in [
        ("empty", ErrorKind::MalformedComponent, "too short"),
        ("text", ErrorKind::MalformedComponent, "magic number"),
        ("zeros", ErrorKind::MalformedComponent, "magic number"),
        ("sparse", ErrorKind::FileBytes, "it has 10 GiB and may have 128 MiB"),
        ("directory", ErrorKind::Io, "not a regular file"),
        ("link-out", ErrorKind::Io, "leads out"),
        ("loop", ErrorKind::Io, "could not be read"),
        ("dangling", ErrorKind::Io, "could not be read"),
        ("odd-\u{fffd}.wasm", ErrorKind::Configuration, "not valid Unicode"),
    ] {
        let error = reason(&registry, name).unwrap_or_else(|| panic!("`{name}` is ready"));
        assert_eq!(error.kind, kind, "{name}: {error:#?}");
        assert!(error.message.contains(told), "{name}: {error}");
        assert!(!error.message.contains('\n'), "{name}: {error}");
    }
    assert_eq!(
        registry.packages().len(),
        12,
        "hidden files and backups are passed over"
    );
}

// attack: H3
#[tokio::test]
async fn a_pipe_does_not_keep_the_host_waiting() {
    let place = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path().join("pipe.wasm"))
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let registry = scan(place.path()).await;
    assert!(
        reason(&registry, "pipe")
            .unwrap()
            .message
            .contains("not a regular file")
    );
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_an_error_that_names_it() {
    let error = match Toolwit::builder()
        .plugins("/no/such/place")
        .code_cache(CodeCacheLocation::Off)
        .build()
        .await
    {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.message.starts_with("/no/such/place could not be read"), "{error}");
}
