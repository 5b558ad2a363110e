//! Commands and options that fix an error of the library.
//!
//! The library names settings and APIs, because it does not know who embeds it. This module is the only one that translates
//! its errors into what a person types.

use toolwit::registry::{AddError, Package};
use toolwit::{Error, ErrorKind};

/// Returns the option that raises the limit which an error reports.
pub(crate) fn limit_option(error: &Error) -> Option<&'static str> {
    let limit = error.limit.as_ref()?.limit;
    match (error.kind, limit) {
        (ErrorKind::LoopLimit, "iterations_max") => Some("--max-iterations"),
        (ErrorKind::LoopLimit, _) => None,
        (_, "fuel_max") => Some("--fuel"),
        (_, "wall_ms_max") => Some("--timeout"),
        (_, "memory_bytes_max") => Some("--memory"),
        (_, "result_bytes_max") => Some("--result-bytes"),
        (_, "nested_calls_max") => Some("--nested-calls"),
        (_, "nested_depth_max") => Some("--nested-depth"),
        _ => None,
    }
}

/// Returns why the dynamic tools of a package are missing, with the command that discovers them as hint.
pub(crate) fn discovery_error(package: &Package) -> Option<Error> {
    let error = package.discovery_error()?;
    let command = format!("`toolwit refresh {}`", package.name);
    let failure = package.discovery_failure();
    let hint = match failure.map(|failure| failure.suggestion.as_deref()) {
        Some(Some(first)) => format!("{first}; then {command} discovers them"),
        Some(None) => format!("{command} tries again"),
        None => format!("{command} discovers them now; a host discovers them when it starts"),
    };
    Some(error.with_suggestion(hint))
}

/// Adds the option or command that fixes a failed `add`.
pub(crate) fn add_error(error: AddError) -> Error {
    let suggestion = match &error {
        AddError::NoComponent(_) => Some("`toolwit build DIR` builds one from source"),
        AddError::NameTaken { .. } => Some("replace it with `--replace`"),
        _ => None,
    };
    let error = Error::from(error);
    match suggestion {
        Some(suggestion) => error.with_suggestion(suggestion),
        None => error,
    }
}
