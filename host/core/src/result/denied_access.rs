//! Accesses that the host denied to a plugin.

use serde::{Deserialize, Serialize};

/// An access that the host denied to a plugin during a call, and the reason.
///
/// Results, errors and events carry this value for operators. Neither the plugin nor the model receives it. If a call fails
/// after a denied access, the model reads only an error text, which contains the access and the reason but not the missing
/// grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedAccess {
    /// The name of the plugin.
    pub plugin: String,
    /// The access, such as ``read `/data/a` ``. A path or address in this text comes from the plugin, and is not trusted.
    pub access: String,
    /// The reason, such as a rule of the grants that does not allow the access, or the absence of a rule.
    pub reason: String,
    /// A change with which the operator can allow the access.
    pub suggestion: String,
    /// The grant that would allow the access, if a grant can allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_grant: Option<MissingGrant>,
}

/// The grant that would allow a denied access, or provide a missing value. An [`Error`](crate::Error) can carry this value as its
/// source, so that a program can derive its own hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the plugin `{plugin}` has no grant under `{key}` for `{value}`")]
pub struct MissingGrant {
    /// The name of the plugin.
    pub plugin: String,
    /// The key of the grants file, such as `http` or `files`.
    pub key: String,
    /// The value of the rule, such as `GET https://example.com/a`. For `files`, the value is a mode and a directory of the
    /// guest, such as `read /data`.
    pub value: String,
}

impl MissingGrant {
    /// Returns a suggestion for the operator, in terms of the grants file.
    #[must_use]
    pub fn suggestion(&self) -> String {
        let Self { plugin, key, value } = self;
        format!("grant `{value}` to `{plugin}` under `{key}` in the grants file")
    }
}
