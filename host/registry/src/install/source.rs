//! The sources of packages to add.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use semver::VersionReq;

use super::remote_file::RemoteFile;
use crate::package::{EXTENSION, check_name};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};

/// The source of packages that an [`Installation`](super::Installation) adds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackageSource {
    /// A component file, or a directory of packages.
    Path(PathBuf),
    /// A component at a URL.
    Url(RemoteFile),
    /// A package of the package index.
    Index(PackageQuery),
}

/// A package of an index: `NAME` for its newest version, or `NAME@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackageQuery {
    /// The name of the package.
    pub name: String,
    /// The requirement for the version. `None` accepts all versions except pre-releases.
    pub version: Option<VersionReq>,
}

impl PackageSource {
    /// Parses a source: a URL, a path, or a package of the index.
    ///
    /// Text without a scheme is a path if a file or directory with this path exists. It is also a path if it begins with a
    /// dot, contains a slash or a backslash, or ends in `.wasm`. Text that is not UTF-8 is always a path.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid URL, name or version.
    pub fn parse(text: &OsStr) -> Result<Self, Error> {
        let path = Path::new(text);
        let Some(text) = text.to_str() else {
            return Ok(Self::Path(path.to_owned()));
        };
        if text.contains("://") {
            return Ok(Self::Url(RemoteFile::parse(text)?));
        }
        let is_path = path.exists()
            || text.starts_with('.')
            || text.contains(['/', '\\'])
            || path.extension().is_some_and(|extension| extension == EXTENSION);
        if is_path {
            return Ok(Self::Path(path.to_owned()));
        }
        Ok(Self::Index(PackageQuery::parse(text)?))
    }
}

impl PackageQuery {
    /// Parses `NAME` or `NAME@VERSION`. A version such as `1.2` accepts the releases that begin with these
    /// numbers; `^1.2` and `~1.2` are requirements as in Cargo.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid name or version.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(parse_requirement(version)?)),
            None => (text, None),
        };
        check_remote_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            version,
        })
    }
}

/// Checks the name of a package that will be downloaded. The name becomes a file name, and must not look like a
/// command-line option.
pub(super) fn check_remote_name(name: &str) -> Result<(), Error> {
    let has_valid_start = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    let result = check_name(name).and(if has_valid_start {
        Ok(())
    } else {
        Err("does not begin with a letter or a digit")
    });
    result.map_err(|why| {
        let message = format!("`{}` is not the name of a package: it {why}", printable(name));
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("name a component file, a directory, a URL, or a package as `NAME@VERSION`")
    })
}

/// Parses a version requirement. A version without an operator, such as `1.2`, accepts the releases that begin with
/// these numbers.
fn parse_requirement(text: &str) -> Result<VersionReq, Error> {
    let has_no_operator = text.starts_with(|first: char| first.is_ascii_digit());
    let parsed = if has_no_operator {
        VersionReq::parse(&format!("={text}"))
    } else {
        VersionReq::parse(text)
    };
    parsed.map_err(|error| {
        let message = format!("`{text}` is not a version: {error}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("use a version such as `1.2.0`, `1.2` or `^1.2`")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PackageSource, Error> {
        PackageSource::parse(OsStr::new(text))
    }

    #[test]
    fn source_is_a_url_a_path_or_a_package() {
        assert!(matches!(parse("https://h/calc.wasm").unwrap(), PackageSource::Url(_)));
        for path in [
            ".",
            "src",
            "src/lib.rs",
            "nowhere/calc",
            "calc.wasm",
            "./calc",
            "..",
            r"a\b",
        ] {
            assert_eq!(parse(path).unwrap(), PackageSource::Path(path.into()), "{path}");
        }
        let PackageSource::Index(query) = parse("calc").unwrap() else {
            panic!("`calc` is not parsed as the name of a package");
        };
        assert_eq!((query.name.as_str(), query.version), ("calc", None));
    }

    #[test]
    fn version_selects_releases() {
        let accepts = |text: &str, version: &str| {
            let query = PackageQuery::parse(text).unwrap();
            query.version.unwrap().matches(&version.parse().unwrap())
        };
        assert!(accepts("calc@1.2.0", "1.2.0") && !accepts("calc@1.2.0", "1.2.1"));
        assert!(accepts("calc@1.2", "1.2.7") && !accepts("calc@1.2", "1.3.0"));
        assert!(accepts("calc@^1.2", "1.3.0") && !accepts("calc@^1.2", "2.0.0"));
        assert!(accepts("calc@1.2.0-rc.1", "1.2.0-rc.1") && !accepts("calc@1.2", "1.2.0-rc.1"));
    }

    #[test]
    fn invalid_name_or_version_is_refused() {
        for text in [
            "",
            "@1",
            "calc@",
            "calc@new",
            "ca lc",
            "native",
            "host@1",
            &"x".repeat(65),
        ] {
            assert_eq!(parse(text).unwrap_err().kind, ErrorKind::Configuration, "{text}");
        }
    }
}
