//! Environment variables of the command.

use std::ffi::OsString;

/// Returns the value of a variable. An empty value counts as unset.
#[expect(
    clippy::disallowed_methods,
    reason = "the command reads its own settings, and variables that the operator's grants name"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
