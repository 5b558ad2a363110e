//! Environment variables that configure models.
//!
//! [`connect`](crate::connect) and [`ModelClient::from_env`](crate::ModelClient::from_env) read them. Their clients read
//! the variables for keys again before each request.

/// Returns the value of a variable. A blank or non-Unicode value counts as not set.
#[expect(
    clippy::disallowed_methods,
    reason = "the public functions that call this function document that they read the environment"
)]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
