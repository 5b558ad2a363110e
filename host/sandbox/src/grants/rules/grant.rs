//! Grants: the rules that an operator gives to a plugin.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::directory_rule::{AccessMode, DirectoryRule};
use super::error::FilePosition;
use super::http_rule::HttpRule;
use super::secret_rule::SecretRule;
use super::value_rules::{ClockRule, EnvRule, KeyValueRule, RandomRule};
use toolwit_core::limits::ByteCount;

/// The grants of a grants file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Grants {
    /// The grants, in the order of the file.
    pub grants: Vec<Grant>,
}

/// A grant: rules for one plugin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// The position of the grant in its file.
    pub position: FilePosition,
    /// The name of the plugin.
    pub plugin: String,
    /// The version of the plugin to which the grant applies.
    pub version: GrantedVersion,
    /// The duration of the grant.
    pub scope: GrantScope,
    /// The time at which the grant was issued, in seconds since 1970. Distinguishes a reissued grant from one that is used up.
    pub issued: Option<u64>,
    /// The rules.
    pub rules: GrantRules,
}

/// The rules of a grant, by kind of access.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GrantRules {
    /// HTTP requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRule>,
    /// Directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DirectoryRule>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvRule>,
    /// Secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretRule>,
    /// Settings, which the guest reads through `wasi:config`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// The plugin's key–value store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyvalue: Option<KeyValueRule>,
    /// Tools that the plugin may call, by their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Keys of a call's context that the plugin may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Access to the blackboard of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blackboard: Option<AccessMode>,
    /// The time that the guest's clocks show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRule>,
    /// The source of the guest's random bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<RandomRule>,
}

impl GrantRules {
    /// Describes each rule in one line, without the values of variables and settings.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.http.iter().map(|rule| format!("http {rule}")).collect();
        lines.extend(self.files.iter().map(|rule| format!("files {rule}")));
        lines.extend(self.env.iter().map(|rule| format!("env {}", rule.name)));
        lines.extend(self.secrets.iter().map(|rule| format!("secret {rule}")));
        lines.extend(self.config.keys().map(|key| format!("config {key}")));
        let quota = |rule: &KeyValueRule| format!("keyvalue {}", ByteCount(rule.quota_bytes));
        lines.extend(self.keyvalue.iter().map(quota));
        lines.extend(self.tools.iter().map(|tool| format!("tool {tool}")));
        lines.extend(self.context.iter().map(|key| format!("context {key}")));
        lines.extend(self.blackboard.iter().map(|mode| format!("blackboard {mode}")));
        if let Some(ClockRule::Frozen(second)) = self.clock {
            lines.push(format!("clock frozen at {second} s after 1970"));
        }
        if let Some(RandomRule::Frozen(seed)) = self.random {
            lines.push(format!("random bytes from the seed {seed}"));
        }
        lines
    }
}

/// The version of a plugin to which a grant applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantedVersion {
    /// The component with this SHA-256 digest, in lower-case hex.
    Digest(String),
    /// Any component with the plugin's name. Anyone who can replace the component file obtains the grant.
    Any,
}

/// The duration of a grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// For one call of the plugin.
    Once,
    /// For the first conversation that uses it, until that conversation ends.
    Session,
    /// Until it is revoked.
    #[default]
    Always,
}

impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
        })
    }
}

impl Grant {
    /// Returns a digest of the grant without its position. The record of used grants identifies the grant by it.
    #[must_use]
    pub fn identity(&self) -> String {
        use sha2::{Digest, Sha256};
        // Hashes the serialized form, so that renaming a Rust type does not change the identity of a used grant.
        let version = match &self.version {
            GrantedVersion::Digest(digest) => digest,
            GrantedVersion::Any => "",
        };
        let content = serde_json::json!([self.plugin, version, self.scope, self.issued, self.rules]).to_string();
        let digest = Sha256::digest(content);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns whether the grant applies to a component.
    #[must_use]
    pub fn is_for(&self, plugin: &str, digest: &str) -> bool {
        self.plugin == plugin
            && match &self.version {
                GrantedVersion::Any => true,
                GrantedVersion::Digest(granted) => granted == digest,
            }
    }
}
