//! Grants: the rules that an operator gives to a plugin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::directory_rule::{AccessMode, DirectoryRule};
use super::error::FilePosition;
use super::http_rule::HttpRule;
use super::secret_rule::SecretRule;
use super::value_rules::{ClockRule, EnvRule, KeyValueRule, RandomRule};
use toolwit_core::limits::ByteCount;

/// A list of grants: those of a grants file, or all grants of a host.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Grants {
    /// The grants. The grants of a file are in the order of the file.
    pub grants: Vec<Grant>,
}

/// A grant: rules for one plugin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Grant {
    /// The position of the grant in its file; `None` for a grant of the application.
    pub position: Option<FilePosition>,
    /// The name of the plugin.
    pub plugin: String,
    /// The version of the plugin to which the grant applies.
    pub version: GrantedVersion,
    /// The duration of the grant.
    pub scope: GrantScope,
    /// The time at which the grant was issued, in nanoseconds since 1970. Distinguishes a grant for one call or one
    /// conversation from an equal grant that was issued earlier and is used up. `None` if the grants file has no time of issue.
    pub issued: Option<u64>,
    /// The directory with the plugin, if the grants file names it. The grant also applies to the plugin in another directory; the
    /// directory only shows which hosts the grant concerns.
    pub directory: Option<PathBuf>,
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
    /// Questions to the person who uses the host.
    #[serde(skip_serializing_if = "is_false")]
    pub ask: bool,
    /// The time that the guest's clocks show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockRule>,
    /// The source of the guest's random bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<RandomRule>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl GrantRules {
    /// Describes each rule in one line, without the values of variables and settings.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.clone().retain(|line| {
            lines.push(line.to_owned());
            true
        });
        lines
    }

    /// Keeps the rules for which `keep` returns `true`. `keep` receives the description of the rule, as in
    /// [`GrantRules::describe`].
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.http.retain(|rule| keep(&format!("http {rule}")));
        self.files.retain(|rule| keep(&format!("files {rule}")));
        self.env.retain(|rule| keep(&format!("env {}", rule.name)));
        self.secrets.retain(|rule| keep(&format!("secret {rule}")));
        self.config.retain(|key, _| keep(&format!("config {key}")));
        self.keyvalue
            .take_if(|rule| !keep(&format!("keyvalue {}", ByteCount(rule.quota_bytes))));
        self.tools.retain(|tool| keep(&format!("tool {tool}")));
        self.context.retain(|key| keep(&format!("context {key}")));
        self.blackboard.take_if(|mode| !keep(&format!("blackboard {mode}")));
        self.ask = self.ask && keep("ask");
        self.clock.take_if(|rule| !keep(&format!("clock {rule}")));
        self.random.take_if(|rule| !keep(&format!("random {rule}")));
    }

    /// Removes the rules that are equal to a rule of `others`.
    pub(crate) fn remove_equal(&mut self, others: &Self) {
        self.http.retain(|rule| !others.http.contains(rule));
        self.files.retain(|rule| !others.files.contains(rule));
        self.env.retain(|rule| !others.env.contains(rule));
        self.secrets.retain(|rule| !others.secrets.contains(rule));
        self.config.retain(|key, value| others.config.get(key) != Some(value));
        self.keyvalue.take_if(|rule| others.keyvalue.as_ref() == Some(rule));
        self.tools.retain(|tool| !others.tools.contains(tool));
        self.context.retain(|key| !others.context.contains(key));
        self.blackboard.take_if(|mode| others.blackboard == Some(*mode));
        self.ask &= !others.ask;
        self.clock.take_if(|rule| others.clock == Some(*rule));
        self.random.take_if(|rule| others.random == Some(*rule));
    }

    /// Removes the rules that `newer` replaces: equal rules, and rules for the same guest path, environment variable or setting.
    /// A grant has at most one key–value rule, so a key–value rule of `newer` replaces the earlier key–value rule. The same
    /// applies to blackboard, clock and random rules.
    pub(crate) fn remove_replaced_by(&mut self, newer: &Self) {
        self.remove_equal(newer);
        let is_replaced_directory = |rule: &DirectoryRule| newer.files.iter().any(|new| new.guest == rule.guest);
        self.files.retain(|rule| !is_replaced_directory(rule));
        let is_replaced_variable = |rule: &EnvRule| newer.env.iter().any(|new| new.name == rule.name);
        self.env.retain(|rule| !is_replaced_variable(rule));
        self.config.retain(|key, _| !newer.config.contains_key(key));
        self.keyvalue.take_if(|_| newer.keyvalue.is_some());
        self.blackboard.take_if(|_| newer.blackboard.is_some());
        self.clock.take_if(|_| newer.clock.is_some());
        self.random.take_if(|_| newer.random.is_some());
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
    /// For the first conversation that uses the grant, until that conversation or the process ends.
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
    /// Returns the SHA-256 of the grant without its position, in hex. This hash identifies the grant in the record of used grants.
    #[must_use]
    pub fn identity(&self) -> String {
        use sha2::{Digest, Sha256};
        // Hashes the JSON of the grant, so that renaming a Rust type does not change the identity of a used grant.
        let version = match &self.version {
            GrantedVersion::Digest(digest) => digest,
            GrantedVersion::Any => "",
        };
        let content = serde_json::json!([self.plugin, version, self.scope, self.issued, self.rules]).to_string();
        let digest = Sha256::digest(content);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns whether the grant concerns a host that loads the plugins of these directories: it was made for one of them. Without
    /// a directory, a grant for any version concerns every host, and a grant for a digest concerns the hosts with this component.
    #[must_use]
    pub fn concerns(&self, plugin_directories: &[PathBuf]) -> bool {
        match &self.directory {
            Some(directory) => plugin_directories.contains(directory),
            None => self.version == GrantedVersion::Any,
        }
    }

    /// Returns whether a text could be the result of [`Grant::identity`]: 64 hex digits in lower case.
    pub(crate) fn is_identity(text: &str) -> bool {
        text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }

    /// Returns whether the grant is valid until it is revoked.
    pub(crate) fn is_permanent(&self) -> bool {
        self.scope == GrantScope::Always
    }

    /// Returns whether the grant is for the plugin of this name, if its component has this digest. Does not check whether the
    /// grant is used up.
    #[must_use]
    pub fn is_for(&self, plugin: &str, digest: &str) -> bool {
        self.plugin == plugin
            && match &self.version {
                GrantedVersion::Any => true,
                GrantedVersion::Digest(granted) => granted == digest,
            }
    }
}

/// Returns the grants that name the plugin but are for a component with another digest. An operator can renew them.
#[must_use]
pub fn stale_grants<'a>(grants: &'a Grants, plugin: &str, digest: &str) -> Vec<&'a Grant> {
    let is_stale = |grant: &&Grant| {
        grant.plugin == plugin && matches!(&grant.version, GrantedVersion::Digest(granted) if granted != digest)
    };
    grants.grants.iter().filter(is_stale).collect()
}
