//! The policy that decides which calls need an approval.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::pattern::{ArgumentPattern, ToolPattern};
use crate::{Arguments, Effect, EffectClass, EffectSource, Tool};

/// The condition under which a call needs an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalMode {
    /// No call needs an approval.
    Never,
    /// The calls of a tool need an approval until one of them is approved in the conversation. An approver can restrict the
    /// approval to the run or to some arguments. Then the other calls still need an approval.
    FirstTime,
    /// [`Always`](Self::Always) for calls in the class [`EffectClass::Write`], [`FirstTime`](Self::FirstTime) in the class
    /// [`EffectClass::Idempotent`], [`Never`](Self::Never) in the class [`EffectClass::Read`].
    Writes,
    /// Each call needs an approval, from the approver or from a remembered answer.
    Always,
    /// Each call is denied, and the approver is not asked.
    Deny,
}

impl ApprovalMode {
    /// All modes, the least strict first. The strictness of [`Writes`](Self::Writes) depends on the effect class of the call.
    pub const ALL: [Self; 5] = [Self::Never, Self::FirstTime, Self::Writes, Self::Always, Self::Deny];

    /// Returns the mode as it is written in files and options, such as `first-time`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::FirstTime => "first-time",
            Self::Writes => "writes",
            Self::Always => "always",
            Self::Deny => "deny",
        }
    }

    /// Resolves the mode for an effect class. The result is never [`ApprovalMode::Writes`].
    fn for_class(self, class: EffectClass) -> Self {
        match (self, class) {
            (Self::Writes, EffectClass::Read) => Self::Never,
            (Self::Writes, EffectClass::Idempotent) => Self::FirstTime,
            (Self::Writes, EffectClass::Write) => Self::Always,
            (mode, _) => mode,
        }
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not an approval mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode of approval: use `never`, `first-time`, `writes`, `always` or `deny`")]
pub struct UnknownApprovalMode(String);

impl FromStr for ApprovalMode {
    type Err = UnknownApprovalMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mode = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        mode.ok_or_else(|| UnknownApprovalMode(text.chars().take(40).collect()))
    }
}

/// A rule of an [`ApprovalPolicy`] for some tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ApprovalRule {
    /// The tools.
    pub tool: ToolPattern,
    /// The effect class; `None` if the rule applies to all classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectClass>,
    /// The pattern of arguments; `None` if the rule applies to all arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentPattern>,
    /// The mode of the calls to which the rule applies.
    pub ask: ApprovalMode,
}

impl ApprovalRule {
    /// Creates a rule for all calls of some tools.
    #[must_use]
    pub fn new(tool: impl Into<String>, ask: ApprovalMode) -> Self {
        Self {
            tool: ToolPattern::new(tool),
            effect: None,
            arguments: None,
            ask,
        }
    }

    /// Restricts the rule to an effect class.
    #[must_use]
    pub fn with_effect(mut self, class: EffectClass) -> Self {
        self.effect = Some(class);
        self
    }

    /// Restricts the rule to some arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: ArgumentPattern) -> Self {
        self.arguments = Some(arguments);
        self
    }

    fn applies_to(&self, tool: &dyn Tool, arguments: &Arguments, class: EffectClass) -> bool {
        self.effect.is_none_or(|effect| effect == class)
            && self.tool.matches(tool)
            && self.arguments.as_ref().is_none_or(|pattern| pattern.matches(arguments))
    }
}

/// A rule that sets the effect class of some tools, in place of the class that the sandbox proves or their authors
/// declare.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectRule {
    /// The tools.
    pub tool: ToolPattern,
    /// Their class.
    pub class: EffectClass,
}

/// The policy of an operator. It decides which calls need an approval, and sets the effect classes of some tools.
///
/// The first rule that applies to a call decides. If no rule applies, the mode of the call's effect class decides. The default policy
/// has no rules, and the mode [`Writes`](ApprovalMode::Writes).
///
/// ```
/// use toolwit_core::{ApprovalMode, ApprovalPolicy, ApprovalRule, EffectClass};
///
/// let policy = ApprovalPolicy::default()
///     .with_rule(ApprovalRule::new("bank#pay", ApprovalMode::Always))
///     .with_rule(ApprovalRule::new("shell", ApprovalMode::Deny))
///     .with_effect("crm/*#upsert", EffectClass::Idempotent);
/// # let _ = policy;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalPolicy {
    rules: Vec<ApprovalRule>,
    effect_rules: Vec<EffectRule>,
    read_mode: ApprovalMode,
    idempotent_mode: ApprovalMode,
    write_mode: ApprovalMode,
}

impl Default for ApprovalPolicy {
    fn default() -> Self {
        Self::of_mode(ApprovalMode::Writes)
    }
}

/// The mode of a call, and whether a rule sets it.
pub(super) struct ChosenMode {
    pub(super) mode: ApprovalMode,
    pub(super) is_set_by_rule: bool,
}

impl ApprovalPolicy {
    /// Creates a policy with the same mode for all calls.
    #[must_use]
    pub fn of_mode(mode: ApprovalMode) -> Self {
        Self {
            rules: Vec::new(),
            effect_rules: Vec::new(),
            read_mode: mode,
            idempotent_mode: mode,
            write_mode: mode,
        }
    }

    /// Sets the mode of the calls in an effect class to which no rule applies.
    #[must_use]
    pub fn with_class(mut self, class: EffectClass, mode: ApprovalMode) -> Self {
        match class {
            EffectClass::Read => self.read_mode = mode,
            EffectClass::Idempotent => self.idempotent_mode = mode,
            EffectClass::Write => self.write_mode = mode,
        }
        self
    }

    /// Sets the mode of all calls to which no rule applies.
    #[must_use]
    pub fn with_mode(self, mode: ApprovalMode) -> Self {
        EffectClass::ALL
            .into_iter()
            .fold(self, |policy, class| policy.with_class(class, mode))
    }

    /// Adds a rule. Earlier rules have precedence over it.
    #[must_use]
    pub fn with_rule(mut self, rule: ApprovalRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the effect class of some tools. If several patterns match a tool, the pattern that was added first applies.
    #[must_use]
    pub fn with_effect(mut self, tools: impl Into<String>, class: EffectClass) -> Self {
        self.effect_rules.push(EffectRule {
            tool: ToolPattern::new(tools),
            class,
        });
        self
    }

    /// Returns the effect of a tool: the class that this policy sets, otherwise `effect`.
    #[must_use]
    pub fn effect(&self, tool: &dyn Tool, effect: Effect) -> Effect {
        let rule = self.effect_rules.iter().find(|rule| rule.tool.matches(tool));
        rule.map_or(effect, |rule| Effect::new(rule.class, EffectSource::Operator))
    }

    /// Returns the mode of a call. It is never [`ApprovalMode::Writes`].
    pub(super) fn mode(&self, tool: &dyn Tool, arguments: &Arguments, class: EffectClass) -> ChosenMode {
        let rule = self.rules.iter().find(|rule| rule.applies_to(tool, arguments, class));
        let mode = rule.map_or_else(|| self.class_mode(class), |rule| rule.ask);
        ChosenMode {
            mode: mode.for_class(class),
            is_set_by_rule: rule.is_some(),
        }
    }

    /// Returns whether this policy is less strict than another policy in at least one effect class. The rules for tools are
    /// not compared.
    #[must_use]
    pub fn is_weaker_than(&self, other: &Self) -> bool {
        EffectClass::ALL.into_iter().any(|class| {
            let strictness = |policy: &Self| {
                let mode = policy.class_mode(class).for_class(class);
                ApprovalMode::ALL.iter().position(|candidate| *candidate == mode)
            };
            strictness(self) < strictness(other)
        })
    }

    fn class_mode(&self, class: EffectClass) -> ApprovalMode {
        match class {
            EffectClass::Read => self.read_mode,
            EffectClass::Idempotent => self.idempotent_mode,
            EffectClass::Write => self.write_mode,
        }
    }

    /// Returns whether the policy has no rules, sets no effect classes, and requires no approvals.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let modes = [self.read_mode, self.idempotent_mode, self.write_mode];
        self.rules.is_empty() && self.effect_rules.is_empty() && modes.iter().all(|mode| *mode == ApprovalMode::Never)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{NativeTool, ToolExt, ToolResult};

    fn tool(name: &str) -> NativeTool {
        NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
            Ok(ToolResult::text(""))
        })
        .unwrap()
    }

    fn mode(policy: &ApprovalPolicy, tool: &dyn Tool, class: EffectClass) -> ApprovalMode {
        policy.mode(tool, &Arguments::new(), class).mode
    }

    #[test]
    fn default_mode_is_always_for_writes_and_first_time_for_idempotent_calls() {
        let (policy, pay) = (ApprovalPolicy::default(), tool("pay"));
        assert_eq!(mode(&policy, &pay, EffectClass::Read), ApprovalMode::Never);
        assert_eq!(mode(&policy, &pay, EffectClass::Idempotent), ApprovalMode::FirstTime);
        assert_eq!(mode(&policy, &pay, EffectClass::Write), ApprovalMode::Always);
    }

    #[test]
    fn first_rule_that_applies_decides_also_for_a_renamed_tool() {
        let policy = ApprovalPolicy::of_mode(ApprovalMode::Never)
            .with_rule(ApprovalRule::new("native#pay", ApprovalMode::Never).with_effect(EffectClass::Read))
            .with_rule(ApprovalRule::new("native#pay", ApprovalMode::Deny))
            .with_rule(ApprovalRule::new("native", ApprovalMode::Always));
        let renamed = tool("pay").with_name("gift");
        assert_eq!(mode(&policy, &renamed, EffectClass::Write), ApprovalMode::Deny);
        assert_eq!(mode(&policy, &renamed, EffectClass::Read), ApprovalMode::Never);
        assert_eq!(mode(&policy, &tool("other"), EffectClass::Read), ApprovalMode::Always);
    }

    #[test]
    fn operator_sets_the_class_of_a_tool() {
        let policy = ApprovalPolicy::default().with_effect("native#pay", EffectClass::Idempotent);
        let effect = policy.effect(&tool("pay"), Effect::default());
        assert_eq!(effect, Effect::new(EffectClass::Idempotent, EffectSource::Operator));
        assert_eq!(policy.effect(&tool("get"), Effect::default()), Effect::default());
    }

    #[test]
    fn modes_parse_as_they_print() {
        for mode in ApprovalMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert!("yes".parse::<ApprovalMode>().is_err());
    }
}
