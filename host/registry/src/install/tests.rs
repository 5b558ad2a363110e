//! Tests of adding downloaded packages, with prepared downloads.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use toolwit_core::{Error, ErrorKind, Phase};

const INDEX_URL: &str = "https://example.com/tools/index.json";

/// A downloader that returns prepared files, by URL. It records the URL and the size limit of each download.
#[derive(Default)]
struct FakeDownloader {
    files: HashMap<String, Vec<u8>>,
    requests: Mutex<Vec<(String, u64)>>,
}

#[async_trait]
impl Download for FakeDownloader {
    async fn download(&self, url: &FileUrl, bytes_max: u64) -> Result<Vec<u8>, Error> {
        self.requests.lock().unwrap().push((url.to_string(), bytes_max));
        let download_error = || Error::new(ErrorKind::Io, Phase::Registry, "the connection was lost");
        self.files.get(url.as_str()).cloned().ok_or_else(download_error)
    }
}

fn component(export: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (result i32) i32.const 1))
            (core instance $i (instantiate $m))
            (func (export "{export}") (result s32) (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

/// Returns a component with an embedded manifest that declares this version.
fn packed_component(export: &str, version: &str) -> Vec<u8> {
    pack(
        &component(export),
        "calc",
        &format!("version = \"{version}\""),
        "calc.toml",
        &|_| Ok(None),
    )
    .unwrap()
}

/// A plugin directory, and an index with releases of `calc`.
struct Setup {
    directory: tempfile::TempDir,
    files: HashMap<String, Vec<u8>>,
    index_entries: Vec<Value>,
}

impl Setup {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            files: HashMap::new(),
            index_entries: Vec::new(),
        }
    }

    /// Adds a release of `calc` to the index, and its component to the downloads.
    fn with_release(mut self, version: &str, content: &[u8]) -> Self {
        let sha256 = FileDigest::of(content).to_string();
        self.index_entries.push(json!({
            "name": "calc", "version": version, "url": format!("calc-{version}.wasm"), "sha256": sha256,
            "bytes": content.len(),
        }));
        self.with_file(&format!("https://example.com/tools/calc-{version}.wasm"), content)
    }

    /// Adds or replaces the file at a URL.
    fn with_file(mut self, url: &str, content: &[u8]) -> Self {
        self.files.insert(url.to_owned(), content.to_vec());
        self
    }

    fn index_json(&self) -> Vec<u8> {
        json!({"format": 1, "packages": self.index_entries})
            .to_string()
            .into_bytes()
    }

    fn downloader(&self) -> Arc<FakeDownloader> {
        let mut files = self.files.clone();
        files.insert(INDEX_URL.to_owned(), self.index_json());
        Arc::new(FakeDownloader {
            files,
            requests: Mutex::default(),
        })
    }

    fn installation(&self) -> Installation {
        let index = RemoteFile::parse(INDEX_URL).unwrap();
        Installation::new(self.directory.path())
            .index(index)
            .downloader(self.downloader())
    }

    async fn add(&self, source: &str) -> Result<Vec<AddedPackage>, AddError> {
        add_to(&self.installation(), source).await
    }

    async fn replace(&self, source: &str) -> Result<Vec<AddedPackage>, AddError> {
        add_to(&self.installation().conflict(NameConflict::Replace), source).await
    }

    fn added_files(&self) -> Vec<String> {
        files_in(self.directory.path())
    }
}

async fn add_to(installation: &Installation, source: &str) -> Result<Vec<AddedPackage>, AddError> {
    installation
        .run(&PackageSource::parse(OsStr::new(source)).unwrap())
        .await
}

fn files_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn newest_release_is_added_as_one_file() {
    let newest = packed_component("two", "1.10.0");
    let setup = Setup::new()
        .with_release("1.9.0", &component("one"))
        .with_release("1.10.0", &newest);
    let added = setup.add("calc").await.unwrap();
    assert_eq!(
        (added[0].name.as_str(), added[0].version.as_deref()),
        ("calc", Some("1.10.0"))
    );
    assert_eq!(
        added[0].url.as_deref(),
        Some("https://example.com/tools/calc-1.10.0.wasm")
    );
    assert_eq!(added[0].digest, FileDigest::of(&newest).to_string());
    assert_eq!(setup.added_files(), ["calc.wasm"]);
    assert_eq!(fs::read(setup.directory.path().join("calc.wasm")).unwrap(), newest);

    let error = setup.add("calc@1.9").await.unwrap_err();
    assert!(matches!(error, AddError::NameTaken { .. }), "{error}");
    // The component has no manifest, so its version is the version in the index.
    let replaced = setup.replace("calc@1.9").await.unwrap();
    assert!(replaced[0].is_replacement && replaced[0].version.as_deref() == Some("1.9.0"));
}

#[tokio::test]
async fn download_is_limited_to_the_listed_size() {
    let content = component("one");
    let setup = Setup::new().with_release("1.0.0", &content);
    let downloader = setup.downloader();
    let installation = setup.installation().downloader(downloader.clone());
    add_to(&installation, "calc").await.unwrap();
    let requests = downloader.requests.lock().unwrap().clone();
    // The first request is for the index.
    assert_eq!(requests[1].1, content.len() as u64);

    let mut setup = Setup::new().with_release("1.0.0", &content);
    setup.index_entries[0]["bytes"] = json!(u64::MAX);
    let downloader = setup.downloader();
    let installation = setup.installation().downloader(downloader.clone());
    let error = add_to(&installation, "calc").await.unwrap_err();
    assert!(matches!(error, AddError::WrongSize { .. }), "{error}");
    assert_eq!(setup.added_files(), [""; 0]);
    let limit = downloader.requests.lock().unwrap()[1].1;
    assert!(
        limit < 1 << 30,
        "an index cannot raise the limit for components: {limit}"
    );
}

#[tokio::test]
async fn content_with_a_wrong_digest_is_refused_and_nothing_is_written() {
    let url = "https://example.com/tools/calc-1.0.0.wasm";
    let setup = Setup::new()
        .with_release("1.0.0", &component("one"))
        .with_file(url, &component("evil"));
    let error = setup.add("calc").await.unwrap_err();
    assert!(matches!(&error, AddError::WrongDigest { .. }), "{error}");
    assert_eq!(setup.added_files(), [""; 0]);

    let index = format!("{INDEX_URL}#sha256={}", FileDigest::of(b"another index"));
    let installation = setup.installation().index(RemoteFile::parse(&index).unwrap());
    let error = add_to(&installation, "calc").await.unwrap_err();
    assert!(
        matches!(&error, AddError::WrongDigest { url, .. } if url == INDEX_URL),
        "{error}"
    );

    let setup = Setup::new().with_release("1.0.0", &component("one"));
    let index = format!("{INDEX_URL}#sha256={}", FileDigest::of(&setup.index_json()));
    let pinned = setup.installation().index(RemoteFile::parse(&index).unwrap());
    add_to(&pinned, "calc").await.unwrap();
}

#[tokio::test]
async fn url_needs_the_digest_of_its_content() {
    let url = "https://example.com/dl/calc.wasm";
    let setup = Setup::new().with_file(url, &component("one"));
    let digest = FileDigest::of(&component("one")).to_string();
    let error = Error::from(setup.add(url).await.unwrap_err());
    assert!(error.message.contains(&digest), "{error}");
    assert!(
        error
            .suggestion
            .clone()
            .unwrap()
            .contains(&format!("{url}#sha256={digest}")),
        "{error:?}"
    );
    assert_eq!(setup.added_files(), [""; 0]);

    let wrong = format!("{url}#sha256={}", FileDigest::of(b""));
    assert!(matches!(
        setup.add(&wrong).await.unwrap_err(),
        AddError::WrongDigest { .. }
    ));
    assert_eq!(setup.added_files(), [""; 0]);

    let added = setup.add(&format!("{url}#sha256={digest}")).await.unwrap();
    assert_eq!((added[0].name.as_str(), added[0].version.as_deref()), ("calc", None));
    assert_eq!(setup.added_files(), ["calc.wasm"]);
}

#[tokio::test]
async fn url_with_an_invalid_plugin_name_is_refused() {
    let content = component("one");
    let digest = FileDigest::of(&content);
    for path in [
        "",
        "..%2fcalc.wasm",
        ".wasm",
        ".calc.wasm",
        "-calc.wasm",
        "native.wasm",
        "a%00b.wasm",
    ] {
        let url = format!("https://example.com/{path}");
        let setup = Setup::new().with_file(&url, &content);
        let error = Error::from(setup.add(&format!("{url}#sha256={digest}")).await.unwrap_err());
        assert!(
            error.message.contains("is not the name of a package"),
            "{path}: {error}"
        );
        assert_eq!(setup.added_files(), [""; 0], "{path}");
    }
}

#[tokio::test]
async fn broken_component_is_refused_although_its_digest_is_right() {
    let setup = Setup::new().with_release("1.0.0", b"junk");
    let error = Error::from(setup.add("calc").await.unwrap_err());
    assert_eq!(error.plugin.as_deref(), Some("calc"), "{error}");
    assert_eq!(setup.added_files(), [""; 0]);
}

#[tokio::test]
async fn failed_download_leaves_the_earlier_package_unchanged() {
    let mut setup = Setup::new().with_release("1.0.0", &packed_component("one", "1.0.0"));
    setup.add("calc").await.unwrap();
    setup = setup.with_release("1.1.0", &packed_component("two", "1.1.0"));
    setup.files.remove("https://example.com/tools/calc-1.1.0.wasm");
    let error = Error::from(setup.replace("calc").await.unwrap_err());
    assert_eq!(error.message, "the connection was lost");
    assert_eq!(setup.added_files(), ["calc.wasm"]);
    let content = fs::read(setup.directory.path().join("calc.wasm")).unwrap();
    assert_eq!(content, packed_component("one", "1.0.0"));
}

#[tokio::test]
async fn downloaded_package_replaces_the_files_next_to_the_earlier_one() {
    let setup = Setup::new().with_release("2.0.0", &packed_component("two", "2.0.0"));
    let path_of = |name: &str| setup.directory.path().join(name);
    fs::write(path_of("calc.wasm"), component("one")).unwrap();
    fs::write(path_of("calc.toml"), "version = \"1.0.0\"\nuse_case = \"adding\"").unwrap();
    let replaced = setup.replace("calc").await.unwrap();
    assert_eq!(replaced[0].version.as_deref(), Some("2.0.0"));
    assert_eq!(
        setup.added_files(),
        ["calc.wasm"],
        "the earlier manifest must not describe the new component"
    );
}

#[tokio::test]
async fn older_release_replaces_a_newer_package_only_if_its_version_is_requested() {
    let setup = Setup::new().with_release("1.0.0", &packed_component("one", "1.0.0"));
    fs::write(
        setup.directory.path().join("calc.wasm"),
        packed_component("two", "1.2.0"),
    )
    .unwrap();
    let error = setup.replace("calc").await.unwrap_err();
    assert!(matches!(&error, AddError::Downgrade { .. }), "{error}");
    assert!(Error::from(error).suggestion.clone().unwrap().contains("calc@1.0.0"));
    let replaced = setup.replace("calc@1.0.0").await.unwrap();
    assert_eq!(replaced[0].version.as_deref(), Some("1.0.0"));
}

#[tokio::test]
async fn older_release_does_not_replace_a_newer_one_without_a_version_in_its_manifest() {
    let setup = Setup::new().with_release("2.0.0", &component("two"));
    setup.add("calc").await.unwrap();
    let mut setup = Setup {
        directory: setup.directory,
        ..Setup::new().with_release("1.0.0", &component("one"))
    };
    for query in ["calc", "calc@>=1"] {
        let error = setup.replace(query).await.unwrap_err();
        assert!(matches!(&error, AddError::Downgrade { .. }), "{query}: {error}");
    }
    setup = setup.with_release("2.1.0", &component("three"));
    let replaced = setup.replace("calc").await.unwrap();
    assert_eq!(replaced[0].version.as_deref(), Some("2.1.0"));
    let replaced = setup.replace("calc@1.0.0").await.unwrap();
    assert_eq!(replaced[0].version.as_deref(), Some("1.0.0"), "it was named");
    fs::write(setup.directory.path().join(".versions.json"), "damaged").unwrap();
    let error = Error::from(setup.replace("calc").await.unwrap_err());
    assert!(error.message.contains("are unknown"), "{error}");
}

#[tokio::test]
async fn manifest_of_another_version_is_refused() {
    let setup = Setup::new().with_release("9.0.0", &packed_component("one", "1.0.0"));
    let error = setup.add("calc").await.unwrap_err();
    assert!(matches!(&error, AddError::OtherVersion { .. }), "{error}");
    assert_eq!(setup.added_files(), [""; 0]);
}

#[tokio::test]
async fn missing_index_or_downloader_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::new(directory.path());
    let error = add_to(&installation, "calc").await.unwrap_err();
    assert!(matches!(&error, AddError::NoIndex(name) if name == "calc"), "{error}");
    let installation = installation.index(RemoteFile::parse(INDEX_URL).unwrap());
    let error = Error::from(add_to(&installation, "calc").await.unwrap_err());
    assert!(error.message.contains("no downloader"), "{error}");
}
