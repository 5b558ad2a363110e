//! Text files with a limited size, and their content as TOML.

use std::io::ErrorKind as IoErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;

use toolwit_core::file::read_text_file;
use toolwit_core::{Error, ErrorKind, Phase};

/// Reads a regular file of at most `bytes_max` bytes. `None` if it does not exist.
///
/// # Errors
/// [`ErrorKind::Io`] if it cannot be read or is not UTF-8, [`ErrorKind::Configuration`] if it is too large or not a regular
/// file.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<Option<String>, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unreadable = |error: std::io::Error| {
        let message = format!("{name} could not be read: {error}");
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    };
    match read_text_file(path, bytes_max) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == IoErrorKind::NotFound => Ok(None),
        Err(error) if matches!(error.kind(), IoErrorKind::InvalidInput | IoErrorKind::FileTooLarge) => {
            Err(unusable(&name, &error.to_string()))
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Parses TOML. The message of an error begins with `origin`, the name of the file; its suggestion is `hint`.
///
/// # Errors
/// [`ErrorKind::Configuration`] with line and column.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, origin: &str, hint: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let (line, column) = error.span().map_or((1, 1), |span| line_and_column(text, span.start));
        let message = format!("{origin}:{line}:{column}: {}", error.message().trim());
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion(hint)
            .with_source(error)
    })
}

/// Returns the error for a file, or a section of a component, that cannot be used.
pub(crate) fn unusable(origin: &str, reason: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("{origin} cannot be used: {reason}"),
    )
}

/// Returns the line and the column of a byte offset, both counted from 1.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
