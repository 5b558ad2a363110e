//! The policy file of an operator: the approval of calls, and the effect classes of tools.

use std::path::Path;

use serde::Deserialize;

use crate::text_file;
use toolwit_core::limits::PROJECT_BYTES_MAX;
use toolwit_core::{ApprovalMode, ApprovalPolicy, ApprovalRule, EffectClass, Error};

/// The policy file of an operator. All keys are optional. Unknown keys are errors.
///
/// ```toml
/// [[effect]]
/// tool = "crm/*#upsert"
/// class = "idempotent"
///
/// [approval]
/// default = "writes"          # the keys `read`, `idempotent` and `write` set the mode of one effect class
///
/// [[approval.rule]]
/// tool = "files#write"
/// arguments = { path = "/tmp/*" }
/// ask = "never"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct OperatorPolicy {
    /// The approval of calls.
    pub approval: ApprovalSettings,
    /// The effect classes that the operator sets. Of several patterns, the first that matches applies.
    pub effect: Vec<EffectSetting>,
}

/// The approval of calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ApprovalSettings {
    /// The mode of each effect class whose own key is not set.
    pub default: Option<ApprovalMode>,
    /// The mode of tools of the class `read`.
    pub read: Option<ApprovalMode>,
    /// The mode of tools of the class `idempotent`.
    pub idempotent: Option<ApprovalMode>,
    /// The mode of tools of the class `write`.
    pub write: Option<ApprovalMode>,
    /// Rules for the tools that match a pattern. The first rule that applies to a call decides.
    pub rule: Vec<ApprovalRule>,
}

/// The effect class that the operator sets for some tools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EffectSetting {
    /// A pattern of tool ids.
    pub tool: String,
    /// The effect class of these tools.
    pub class: EffectClass,
}

impl OperatorPolicy {
    /// The usual name of the file.
    pub const FILE_NAME: &str = "policy.toml";

    /// Reads a policy file. `None` if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) with line and column for invalid content, such as an
    /// unknown key; also if the file is too large or not a regular file. [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if it
    /// cannot be read or is not UTF-8 text.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let Some(text) = text_file::read(path, PROJECT_BYTES_MAX)? else {
            return Ok(None);
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hint = "its keys are `[approval]`, `[[approval.rule]]` and `[[effect]]`; see `docs/src/operating.md`";
        text_file::parse(&text, &name, hint).map(Some)
    }

    /// Converts the settings to an approval policy. `mode`, if there is one, replaces the modes of all effect classes.
    /// It does not change the rules and the effect classes of tools.
    #[must_use]
    pub fn approval_policy(&self, mode: Option<ApprovalMode>) -> ApprovalPolicy {
        let settings = &self.approval;
        let mut policy = ApprovalPolicy::default();
        if let Some(mode) = mode.or(settings.default) {
            policy = policy.with_mode(mode);
        }
        if mode.is_none() {
            let classes = [
                (EffectClass::Read, settings.read),
                (EffectClass::Idempotent, settings.idempotent),
                (EffectClass::Write, settings.write),
            ];
            for (class, class_mode) in classes {
                policy = class_mode
                    .into_iter()
                    .fold(policy, |policy, class_mode| policy.with_class(class, class_mode));
            }
        }
        policy = settings.rule.iter().cloned().fold(policy, ApprovalPolicy::with_rule);
        self.effect
            .iter()
            .fold(policy, |policy, effect| policy.with_effect(&effect.tool, effect.class))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<OperatorPolicy, Error> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(OperatorPolicy::FILE_NAME);
        fs::write(&path, text).unwrap();
        OperatorPolicy::read(&path).map(Option::unwrap)
    }

    #[test]
    fn policy_has_modes_rules_and_effects() {
        let policy = read(
            "[approval]\nwrite = \"first-time\"\n[[approval.rule]]\ntool = \"bank\"\nask = \"deny\"\n\
             [[effect]]\ntool = \"crm/*\"\nclass = \"idempotent\"\n",
        );
        let policy = policy.unwrap();
        let expected = ApprovalPolicy::default()
            .with_class(EffectClass::Write, ApprovalMode::FirstTime)
            .with_rule(ApprovalRule::new("bank", ApprovalMode::Deny))
            .with_effect("crm/*", EffectClass::Idempotent);
        assert_eq!(policy.approval_policy(None), expected);
        let with_mode = policy.approval_policy(Some(ApprovalMode::Always));
        assert_eq!(
            with_mode,
            ApprovalPolicy::of_mode(ApprovalMode::Always)
                .with_rule(ApprovalRule::new("bank", ApprovalMode::Deny))
                .with_effect("crm/*", EffectClass::Idempotent),
            "`mode` replaces the modes and keeps the rules"
        );
        assert_eq!(
            OperatorPolicy::default().approval_policy(None),
            ApprovalPolicy::default()
        );
    }

    #[test]
    fn invalid_policy_is_refused_with_its_line() {
        for (text, position) in [
            ("[approval]\nwrites = \"never\"\n", "policy.toml:2:1: "),
            ("[approval]\nwrite = \"nevr\"\n", "policy.toml:2:9: "),
            ("[[effect]]\ntool = \"x\"\nclass = \"none\"\n", "policy.toml:3:9: "),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message.starts_with(position), "{error}");
        }
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(
            OperatorPolicy::read(&directory.path().join("policy.toml")).unwrap(),
            None
        );
    }
}
