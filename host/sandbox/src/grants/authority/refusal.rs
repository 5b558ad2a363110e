//! Accesses that the host refused to a guest.

use toolwit_core::{Error, ErrorKind, Phase};

/// An access that the host refused to a guest.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The access, such as `send GET https://example.com/a`.
    pub(super) access: String,
    pub(super) reason: String,
    pub(super) suggestion: String,
    pub(super) missing_grant: Option<MissingGrant>,
}

/// The grant that would allow a refused access, or provide a missing value. It is the source of an error, from which a program can
/// build its own hint.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the plugin `{plugin}` has no grant under `{key}` for `{value}`")]
pub struct MissingGrant {
    /// The name of the plugin.
    pub plugin: String,
    /// The key of the grants file: `http`, `tools`, `blackboard`, `env` or `config`.
    pub key: &'static str,
    /// The value of the rule, such as `GET https://example.com/a`. The guest chose it.
    pub value: String,
    /// The error of the trapped guest, if it trapped.
    #[source]
    pub cause: Option<Error>,
}

impl MissingGrant {
    fn suggestion(&self) -> String {
        format!(
            "grant `{}` to `{}` under `{}` in the grants file",
            self.value, self.plugin, self.key
        )
    }
}

impl Refusal {
    /// Creates a refusal that no grant would prevent.
    pub(crate) fn new(access: String, reason: String, suggestion: String) -> Self {
        Self {
            access,
            reason,
            suggestion,
            missing_grant: None,
        }
    }

    /// Creates a refusal that a grant would prevent.
    pub(super) fn for_missing_grant(access: String, reason: String, missing_grant: MissingGrant) -> Self {
        Self {
            access,
            reason,
            suggestion: missing_grant.suggestion(),
            missing_grant: Some(missing_grant),
        }
    }

    /// Converts the refusal to the error of its call. `cause` is the error of the guest.
    pub(super) fn into_error(self, cause: Option<Error>) -> Error {
        let message = format!("it may not {}: {}", self.access, self.reason);
        let error = Error::new(ErrorKind::Denied, Phase::Execute, message).with_suggestion(self.suggestion);
        match (self.missing_grant, cause) {
            (Some(missing_grant), cause) => error.with_source(MissingGrant { cause, ..missing_grant }),
            (None, Some(cause)) => error.with_source(cause),
            (None, None) => error,
        }
    }
}
