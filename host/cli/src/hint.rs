//! Commands and options that fix an error of the library.
//!
//! The library names settings and APIs, because it does not know who embeds it. This module is the only one that translates
//! its errors into what a person types.

use std::borrow::Cow;
use std::error::Error as _;

use toolwit::registry::{AddError, Package};
use toolwit::sandbox::MissingGrant;
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
    Some(error.override_suggestion(hint))
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
        Some(suggestion) => error.override_suggestion(suggestion),
        None => error,
    }
}

/// Replaces the suggestion of an error by the command that fixes it, if a grant is missing.
pub(crate) fn with_grant_command(error: &Error) -> Cow<'_, Error> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(missing) = cause.downcast_ref::<MissingGrant>() {
            return Cow::Owned(error.clone().override_suggestion(suggestion(error.kind, missing)));
        }
        source = cause.source();
    }
    Cow::Borrowed(error)
}

fn suggestion(kind: ErrorKind, missing: &MissingGrant) -> String {
    let plugin = shell_word(&missing.plugin);
    if kind == ErrorKind::MissingKey {
        let value = shell_word(&missing.value);
        return format!(
            "ask the user for it, then run `toolwit grant {plugin} --env {value}=VALUE`, or store it as a secret"
        );
    }
    let flag = match missing.key {
        "tools" => "tool",
        key => key,
    };
    format!("toolwit grant {plugin} --{flag} {}", shell_word(&missing.value))
}

/// Quotes a word for a shell: people copy the command, and a guest chooses the value.
fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,#".contains(c);
    // A `#` at the start of a word begins a comment.
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: C21
    #[test]
    fn a_suggested_command_does_not_execute_its_values() {
        assert_eq!(shell_word("text#slugify"), "text#slugify");
        assert_eq!(shell_word("x; touch /tmp/y #"), "'x; touch /tmp/y #'");
        assert_eq!(shell_word("GET http://h/$(id)\""), "'GET http://h/$(id)\"'");
        assert_eq!(shell_word("it's `id`"), r"'it'\''s `id`'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("# gone"), "'# gone'");
    }
}
