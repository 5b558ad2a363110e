//! The index of packages: a static JSON file that lists releases with their URLs and digests.

use semver::Version;
use serde::Deserialize;

use super::add_error::AddError;
use super::remote_file::{FileDigest, FileUrl};
use super::source::{PackageQuery, check_remote_name};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};

/// The supported version of the index format.
const FORMAT_VERSION: u32 = 1;

/// The JSON form of an index. Unknown keys are ignored, so that an index can have additional keys for later versions of this
/// program.
#[derive(Deserialize)]
struct IndexFile {
    format: u32,
    packages: Vec<ReleaseEntry>,
}

/// The JSON form of a release.
#[derive(Deserialize)]
struct ReleaseEntry {
    name: String,
    version: Version,
    url: String,
    sha256: FileDigest,
    bytes: u64,
}

/// A package index, with its releases sorted by name and version.
#[derive(Debug)]
pub(super) struct PackageIndex {
    url: FileUrl,
    releases: Vec<Release>,
}

/// A version of a package: the location of a component file, and the properties that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) url: FileUrl,
    pub(super) digest: FileDigest,
    pub(super) size_bytes: u64,
}

impl PackageIndex {
    /// Parses an index that was downloaded from `url`. The URLs in the index may be relative to `url`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the text is not an index of the supported format, an entry is invalid, or a release is listed
    /// twice.
    pub(super) fn parse(json: &[u8], url: &FileUrl) -> Result<Self, Error> {
        let unusable = |why: String| {
            let message = format!("the package index `{url}` cannot be used: {why}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        let file: IndexFile = serde_json::from_slice(json).map_err(|error| unusable(error.to_string()))?;
        if file.format != FORMAT_VERSION {
            let format = file.format;
            return Err(unusable(format!(
                "its format is {format}, and only {FORMAT_VERSION} is supported"
            )));
        }
        let mut releases: Vec<Release> = Vec::with_capacity(file.packages.len());
        for entry in file.packages {
            let (name, version) = (printable(&entry.name), entry.version.clone());
            let release = Release::from_entry(entry, url)
                .map_err(|error| unusable(format!("{name} {version}: {}", error.message)))?;
            releases.push(release);
        }
        releases.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        let is_same_release =
            |pair: &&[Release]| (&pair[0].name, &pair[0].version) == (&pair[1].name, &pair[1].version);
        if let Some(pair) = releases.windows(2).find(is_same_release) {
            return Err(unusable(format!("it lists {} {} twice", pair[0].name, pair[0].version)));
        }
        Ok(Self {
            url: url.clone(),
            releases,
        })
    }

    /// Returns the newest release that a query accepts. A query without a version accepts no pre-releases.
    ///
    /// # Errors
    /// [`AddError::NotInIndex`], [`AddError::NoVersion`].
    pub(super) fn newest(&self, query: &PackageQuery) -> Result<&Release, AddError> {
        let releases = || self.releases.iter().filter(|release| release.name == query.name);
        let is_accepted = |release: &&Release| match &query.version {
            Some(version) => version.matches(&release.version),
            None => release.version.pre.is_empty(),
        };
        if let Some(newest) = releases().rev().find(is_accepted) {
            return Ok(newest);
        }
        let versions: Vec<_> = releases().map(|release| release.version.to_string()).collect();
        if versions.is_empty() {
            return Err(AddError::NotInIndex {
                name: query.name.clone(),
                index: self.url.to_string(),
            });
        }
        Err(AddError::NoVersion {
            name: query.name.clone(),
            version: query.version.as_ref().map(ToString::to_string),
            versions,
        })
    }
}

impl Release {
    /// Checks and converts an entry of the index at `index_url`.
    fn from_entry(entry: ReleaseEntry, index_url: &FileUrl) -> Result<Self, Error> {
        check_remote_name(&entry.name)?;
        Ok(Self {
            url: index_url.join(&entry.url)?,
            name: entry.name,
            version: entry.version,
            digest: entry.sha256,
            size_bytes: entry.bytes,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn index_url() -> FileUrl {
        FileUrl::parse("https://example.com/tools/index.json").unwrap()
    }

    fn entry(name: &str, version: &str) -> Value {
        let (url, sha256) = (
            format!("{name}-{version}.wasm"),
            FileDigest::of(version.as_bytes()).to_string(),
        );
        json!({"name": name, "version": version, "url": url, "sha256": sha256, "bytes": 5, "note": "ignored"})
    }

    fn parse(index: &Value) -> Result<PackageIndex, Error> {
        PackageIndex::parse(&serde_json::to_vec(index).unwrap(), &index_url())
    }

    fn index(versions: &[&str]) -> PackageIndex {
        let mut packages: Vec<_> = versions.iter().map(|version| entry("calc", version)).collect();
        packages.push(entry("calculator", "9.0.0"));
        parse(&json!({"format": 1, "packages": packages})).unwrap()
    }

    #[test]
    fn newest_accepted_release_is_selected() {
        let index = index(&["1.9.0", "1.10.0", "2.0.0-rc.1", "0.1.0"]);
        let newest = |query: &str| {
            let release = index.newest(&PackageQuery::parse(query).unwrap());
            release.map(|release| release.version.to_string())
        };
        assert_eq!(newest("calc").unwrap(), "1.10.0");
        assert_eq!(newest("calc@1.9").unwrap(), "1.9.0");
        assert_eq!(newest("calc@^0.1").unwrap(), "0.1.0");
        assert_eq!(newest("calc@2.0.0-rc.1").unwrap(), "2.0.0-rc.1");
        assert!(matches!(newest("calc@3").unwrap_err(), AddError::NoVersion { versions, .. } if versions.len() == 4));
        assert!(matches!(newest("cal").unwrap_err(), AddError::NotInIndex { .. }));
        let release = index.newest(&PackageQuery::parse("calc").unwrap()).unwrap();
        assert_eq!(release.url.as_str(), "https://example.com/tools/calc-1.10.0.wasm");
        assert_eq!(release.digest, FileDigest::of(b"1.10.0"));
    }

    #[test]
    fn pre_release_is_not_selected_without_a_version() {
        let index = index(&["1.0.0-rc.1"]);
        let error = index.newest(&PackageQuery::parse("calc").unwrap()).unwrap_err();
        assert!(matches!(error, AddError::NoVersion { version: None, .. }), "{error}");
    }

    #[test]
    fn invalid_index_is_refused() {
        let parse_with = |key: &str, value: Value| {
            let mut wrong = entry("calc", "1.0.0");
            wrong[key] = value;
            parse(&json!({"format": 1, "packages": [entry("text", "1.0.0"), wrong]}))
        };
        assert!(parse_with("bytes", json!(6)).is_ok());
        for (key, value) in [
            ("name", json!("../calc")),
            ("name", json!("/etc/calc")),
            ("name", json!(".calc")),
            ("name", json!("-calc")),
            ("name", json!("calc\u{0}")),
            ("name", json!("native")),
            ("name", Value::Null),
            ("version", json!("new")),
            ("url", json!("http://example.com/calc.wasm")),
            ("url", json!("http://127.0.0.1/calc.wasm")),
            ("url", json!("file:///calc.wasm")),
            ("sha256", json!("abc")),
            ("bytes", json!(-1)),
        ] {
            let error = parse_with(key, value.clone()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration, "{key} {value}");
            assert!(error.message.contains("index.json"), "{error}");
        }
        for index in [json!([]), json!({}), json!({"format": 2, "packages": []})] {
            assert!(parse(&index).is_err(), "{index}");
        }
        let twice = json!({"format": 1, "packages": [entry("calc", "1.0.0"), entry("calc", "1.0.0")]});
        assert!(parse(&twice).unwrap_err().message.contains("twice"));
        assert!(PackageIndex::parse(b"<html>", &index_url()).is_err());
    }
}
