//! Parsing a manifest.

use std::path::Path;

use super::{MANIFEST_SECTION, Manifest};
use crate::text_file;
use toolwit_core::Error;
use toolwit_core::limits::{ByteCount, MANIFEST_BYTES_MAX};
use toolwit_sections::custom_section;

impl Manifest {
    /// Parses a manifest. `origin` is the name of its file in errors.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) with line and column, also for an unknown
    /// key.
    pub fn parse(text: &str, origin: &str) -> Result<Self, Error> {
        text_file::parse(
            text,
            origin,
            "the keys of a manifest are listed in `manifest.schema.json`",
        )
    }

    /// Reads the manifest that is embedded in a component. `None` if there is no manifest.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`]; [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) also if the
    /// section is too large or not UTF-8 text.
    pub fn embedded(component: &[u8]) -> Result<Option<Self>, Error> {
        let Some(section) = custom_section(component, MANIFEST_SECTION) else {
            return Ok(None);
        };
        let unusable = |why: &str| text_file::unusable(&format!("the manifest {MANIFEST_SECTION}"), why);
        if section.len() as u64 > MANIFEST_BYTES_MAX {
            return Err(unusable(&format!(
                "it is larger than {}",
                ByteCount(MANIFEST_BYTES_MAX)
            )));
        }
        match std::str::from_utf8(section) {
            Ok(text) => Self::parse(text, MANIFEST_SECTION).map(Some),
            Err(_) => Err(unusable("it is not UTF-8 text")),
        }
    }

    /// Reads the manifest in a file. `None` if the file does not exist.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`] and of [`text_file::read`].
    pub(crate) fn from_file(path: &Path) -> Result<Option<Self>, Error> {
        let origin = path.file_name().unwrap_or_default().to_string_lossy();
        let text = text_file::read(path, MANIFEST_BYTES_MAX)?;
        text.map(|text| Self::parse(&text, &origin)).transpose()
    }
}
