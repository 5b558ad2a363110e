//! Errors as text that a model can act on.

use std::io;
use std::path::Path;

/// The error number of WASI for a path outside of all granted directories.
const NOT_CAPABLE: i32 = 76;

/// Describes why an operation on a path failed.
#[must_use]
pub fn describe(operation: &str, path: &Path, error: &io::Error) -> String {
    let path = path.display();
    if error.raw_os_error() == Some(NOT_CAPABLE) || error.to_string().contains("pre-opened") {
        return format!("`{path}` is not in a granted directory; `list-files` without a path lists those");
    }
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "it does not exist in a granted directory".to_owned(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "the grant does not allow it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::NotADirectory => "it is not a directory".to_owned(),
        _ => error.to_string(),
    };
    format!("cannot {operation} `{path}`: {reason}")
}

/// Returns a function that describes the error of an operation on a path, for `map_err`.
pub(crate) fn failed_to<'a>(operation: &'a str, path: &'a Path) -> impl Fn(io::Error) -> String + 'a {
    move |error| describe(operation, path, &error)
}
