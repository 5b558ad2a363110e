//! The source of the bytes of a resource or a message: literal text or a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::ResourceContents;

use super::uri_template::Variables;
use toolwit::tool::file::read_file;

/// Maximum size of a served file, in bytes.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The size in bytes and the modification time of a file. A different stamp means that the file has changed.
pub(crate) type FileStamp = (u64, Option<SystemTime>);

/// The source of the bytes of a resource or a message.
#[derive(Debug)]
pub(super) enum ContentSource {
    /// Text. It can have placeholders.
    Text(String),
    /// A file below a directory. The path can have placeholders.
    File { directory: PathBuf, path: String },
}

impl ContentSource {
    /// Replaces the placeholders of the text or of the path, and returns the bytes of the text or of the file. A value is
    /// escaped with `escape` before it is inserted into text. `None` if this is a file, and a value of the client is not a
    /// file name or no file exists for the values.
    ///
    /// # Errors
    /// The reason why the bytes cannot be read, for the log of the server. Clients must not see the reason, because it can
    /// contain a path.
    pub(super) fn read(&self, values: &Variables, escape: fn(&str) -> String) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Text(text) => Ok(Some(fill_placeholders(text, values, escape).into_bytes())),
            Self::File { directory, path } => {
                if values.values().any(|value| !is_file_name(value)) {
                    return Ok(None);
                }
                let path = fill_placeholders(path, values, str::to_owned);
                match read_below(directory, &path)? {
                    None if values.is_empty() => Err(format!("`{path}` does not exist")),
                    bytes => Ok(bytes),
                }
            }
        }
    }

    /// Returns the bytes without replacing placeholders.
    ///
    /// # Errors
    /// As [`ContentSource::read`], and if the file does not exist.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::File { directory, path } => {
                read_below(directory, path)?.ok_or_else(|| format!("`{path}` does not exist"))
            }
        }
    }

    /// Returns the stamp of a file whose path has no placeholders. `None` for text, and for a file whose metadata
    /// cannot be read.
    pub(super) fn stamp(&self) -> Option<FileStamp> {
        let Self::File { directory, path } = self else {
            return None;
        };
        let metadata = fs::metadata(directory.join(path)).ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    }
}

/// Replaces each placeholder `{{name}}` by the value of `name`, after `escape` was applied to the value. A placeholder
/// without a value is removed.
pub(super) fn fill_placeholders(text: &str, values: &Variables, escape: fn(&str) -> String) -> String {
    let mut result = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else {
            break;
        };
        result.push_str(before);
        if let Some(value) = values.get(name.trim()) {
            result.push_str(&escape(value));
        }
        remaining = after;
    }
    result.push_str(remaining);
    result
}

/// Returns the names of the placeholders `{{name}}` in a text.
pub(super) fn placeholders(text: &str) -> Vec<&str> {
    let after_braces = text.split("{{").skip(1);
    after_braces
        .filter_map(|after| Some(after.split_once("}}")?.0.trim()))
        .collect()
}

/// Reads a file below a directory. Returns `None` if the file does not exist. A path or a symbolic link that leads out of
/// the directory is an error.
fn read_below(directory: &Path, path: &str) -> Result<Option<Vec<u8>>, String> {
    let failed = |error: io::Error| format!("`{path}` cannot be read: {error}");
    let root = directory.canonicalize().map_err(failed)?;
    let file = match root.join(path).canonicalize() {
        Ok(file) => file,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.starts_with(&root) {
        return Err(format!("`{path}` leads out of the directory"));
    }
    read_file(&file, FILE_BYTES_MAX).map(Some).map_err(failed)
}

/// Returns whether an error means that no file exists at a path.
fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// Returns whether a value of a client is safe in a path. A safe value cannot lead to another directory or to a hidden
/// file.
fn is_file_name(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with('.')
        && value
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' '))
}

/// Returns bytes as the contents of a resource: as text if the media type is textual and the bytes are UTF-8, otherwise
/// in base64.
pub(super) fn resource_contents(uri: &str, mime_type: &str, bytes: Vec<u8>) -> ResourceContents {
    let text = if is_text(mime_type) {
        String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
    } else {
        Err(bytes)
    };
    let contents = match text {
        Ok(text) => ResourceContents::text(text, uri),
        Err(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    contents.with_mime_type(mime_type)
}

fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/json" | "application/xml" | "application/toml" | "application/yaml" | "application/javascript"
        )
}

/// Returns the media type for the extension of a file.
pub(super) fn mime_type_of(path: &str) -> &'static str {
    let extension = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "xml" => "application/xml",
        "toml" => "application/toml",
        "yaml" | "yml" => "application/yaml",
        "txt" => "text/plain",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        _ => "application/octet-stream",
    }
}

/// Escapes a value for the inside of a JSON string.
pub(super) fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn values(value: &str) -> Variables {
        Variables::from([("id".to_owned(), value.to_owned())])
    }

    fn read_note(directory: &Path, value: &str) -> Result<Option<Vec<u8>>, String> {
        let source = ContentSource::File {
            directory: directory.join("notes"),
            path: "{{id}}.md".to_owned(),
        };
        source.read(&values(value), str::to_owned)
    }

    #[test]
    fn the_value_of_a_variable_cannot_select_a_file_outside_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("notes")).unwrap();
        fs::write(directory.path().join("notes/a.md"), "inside").unwrap();
        fs::write(directory.path().join("secret.md"), "outside").unwrap();
        assert_eq!(read_note(directory.path(), "a").unwrap().unwrap(), b"inside");
        let long = "a".repeat(10_000);
        for value in ["../secret", "..", ".hidden", "a/b", "", "a\0", "missing", long.as_str()] {
            assert_eq!(read_note(directory.path(), value), Ok(None), "{value:?}");
        }
    }

    #[test]
    fn a_missing_file_of_a_path_without_variables_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let source = ContentSource::File {
            directory: directory.path().to_owned(),
            path: "rules.md".to_owned(),
        };
        let problem = source.read(&Variables::new(), str::to_owned).unwrap_err();
        assert_eq!(problem, "`rules.md` does not exist");
        assert_eq!(source.bytes().unwrap_err(), problem);
    }

    #[cfg(unix)]
    #[test]
    fn link_out_of_the_directory_and_a_pipe_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("notes")).unwrap();
        fs::write(directory.path().join("secret.md"), "outside").unwrap();
        std::os::unix::fs::symlink("../secret.md", directory.path().join("notes/link.md")).unwrap();
        assert!(read_note(directory.path(), "link").unwrap_err().contains("leads out"));
        // A pipe must not be opened, because opening waits for a writer.
        let pipe = directory.path().join("notes/pipe.md");
        let status = std::process::Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(status.success());
        assert!(
            read_note(directory.path(), "pipe")
                .unwrap_err()
                .contains("not a regular file")
        );
    }

    #[test]
    fn a_value_cannot_end_the_json_string_that_contains_it() {
        let source = ContentSource::Text(r#"{"id":"{{id}}"}"#.to_owned());
        let bytes = source.read(&values("\",\"admin\":\""), json_escaped).unwrap().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value.as_object().unwrap().len(), 1);
    }

    #[test]
    fn bytes_that_are_not_text_are_sent_in_base64() {
        let sent = |mime_type, bytes: &[u8]| {
            serde_json::to_value(resource_contents("x://y", mime_type, bytes.to_vec())).unwrap()
        };
        assert_eq!(sent("text/plain", b"hi")["text"], "hi");
        assert_eq!(sent("text/plain", b"\xff")["blob"], "/w==");
        assert_eq!(sent("image/png", b"hi")["blob"], "aGk=");
    }
}
