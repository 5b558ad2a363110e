//! Environment variables that configure models. They are read when a client is built. The variables of keys are also
//! read before each request.

/// Returns the value of a variable. A blank or non-Unicode value counts as not set.
#[expect(
    clippy::disallowed_methods,
    reason = "the functions that read the environment are documented to do so"
)]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
