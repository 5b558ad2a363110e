//! Reading a manifest.

use std::path::Path;

use super::{MANIFEST_SECTION, Manifest};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sections::custom_section;

/// The largest manifest that is read, in bytes.
pub const MANIFEST_BYTES_MAX: u64 = 256 << 10;

impl Manifest {
    /// Reads a manifest from TOML. `place` says in errors where it stands.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with line and column, also for a key that a manifest does not have.
    pub fn parse(text: &str, place: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| {
            let (line, column) = error.span().map_or((1, 1), |span| line_and_column(text, span.start));
            let told = error.message().trim();
            let message = format!("{place}:{line}:{column}: {told}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("the keys of a manifest are listed in `manifest.schema.json`")
                .with_source(error)
        })
    }

    /// Reads the manifest that a component carries. `None` when it carries none.
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
            Err(_) => Err(refused(MANIFEST_SECTION, "it is no UTF-8 text")),
        }
    }

    /// Reads the manifest beside a component. `None` when there is none.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`], and [`ErrorKind::Io`].
    pub(crate) fn beside(path: &Path) -> Result<Option<Self>, Error> {
        let place = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&place, error)),
        };
        if !metadata.is_file() {
            return Err(refused(&place, "it is no regular file"));
        }
        if metadata.len() > MANIFEST_BYTES_MAX {
            return Err(refused(&place, "it is larger than 256 KiB"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&place, error))?;
        Self::parse(&text, &place).map(Some)
    }
}

fn refused(place: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the manifest {place} cannot be used: {why}"),
    )
}

fn unreadable(place: &str, error: std::io::Error) -> Error {
    let message = format!("the manifest {place} could not be read: {error}");
    Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
