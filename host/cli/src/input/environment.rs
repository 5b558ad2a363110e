//! The environment of the command: its own settings, and what an operator's files name.

use std::ffi::OsString;

/// Returns a variable's value; an empty one counts as not set.
#[expect(
    clippy::disallowed_methods,
    reason = "the command reads its own settings, and those that a file of the operator names"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
