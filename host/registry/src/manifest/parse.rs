//! Parsing a manifest.

use std::path::Path;

use super::{MANIFEST_SECTION, Manifest};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sections::custom_section;

/// The largest accepted manifest, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 256 << 10;

impl Manifest {
    /// Parses a manifest. `origin` names its file in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with line and column, also for an unknown key.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| {
            let (line, column) = error.span().map_or((1, 1), |span| line_and_column(text, span.start));
            let message = format!("{origin}:{line}:{column}: {}", error.message().trim());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("the keys of a manifest are listed in `manifest.schema.json`")
                .with_source(error)
        })
    }

    /// Reads the manifest that is embedded in a component. `None` if there is no manifest.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`].
    pub fn embedded(component: &[u8]) -> Result<Option<Self>, Error> {
        let Some(section) = custom_section(component, MANIFEST_SECTION) else {
            return Ok(None);
        };
        let too_large = section.len() as u64 > MANIFEST_BYTES_MAX;
        match std::str::from_utf8(section) {
            Ok(text) if !too_large => Self::parse(text, MANIFEST_SECTION).map(Some),
            Ok(_) => Err(refused(MANIFEST_SECTION, "it is larger than 256 KiB")),
            Err(_) => Err(refused(MANIFEST_SECTION, "it is not UTF-8 text")),
        }
    }

    /// Reads the manifest in a file. `None` if the file does not exist.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`], and [`ErrorKind::Io`].
    pub(crate) fn from_file(path: &Path) -> Result<Option<Self>, Error> {
        let origin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&origin, error)),
        };
        if !metadata.is_file() {
            return Err(refused(&origin, "it is not a regular file"));
        }
        if metadata.len() > MANIFEST_BYTES_MAX {
            return Err(refused(&origin, "it is larger than 256 KiB"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&origin, error))?;
        Self::parse(&text, &origin).map(Some)
    }
}

fn refused(origin: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the manifest {origin} cannot be used: {why}"),
    )
}

fn unreadable(origin: &str, error: std::io::Error) -> Error {
    let message = format!("the manifest {origin} could not be read: {error}");
    Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
