//! The environment variables that configure models, read when one is made and nowhere else.

/// Returns a variable's value; one that is blank, or no Unicode, counts as not set.
#[expect(
    clippy::disallowed_methods,
    reason = "what is called `from_env` says that it reads the environment"
)]
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
