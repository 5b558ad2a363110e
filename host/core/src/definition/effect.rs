//! Effect classes: whether a call changes anything outside its run, and the source of the class.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ToolDefinition;

/// The class of a call: whether it changes anything outside its run, and whether it can be repeated.
///
/// The class decides whether the host repeats a call after a crash, and whether the call needs an approval. The classes are
/// ordered: a call in a greater class needs more care. Without information about a tool, its class is [`Write`](Self::Write).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EffectClass {
    /// The call changes nothing outside its run. It can run again at any time.
    Read,
    /// Repeating a call has no further effect. The repeated call has the same idempotency key in its context.
    Idempotent,
    /// Any other call. The host never repeats the call by itself.
    #[default]
    Write,
}

impl EffectClass {
    /// All classes, in ascending order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Idempotent, Self::Write];

    /// Returns the class as it is written in files and options, such as `read`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Idempotent => "idempotent",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a text that is not the name of an effect class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an effect class: use `read`, `idempotent` or `write`")]
pub struct UnknownEffectClass(String);

impl FromStr for EffectClass {
    type Err = UnknownEffectClass;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let class = Self::ALL.into_iter().find(|class| class.as_str() == text);
        class.ok_or_else(|| UnknownEffectClass(text.chars().take(40).collect()))
    }
}

/// The source of an effect class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EffectSource {
    /// The operator or the application set it.
    Operator,
    /// The sandbox proved it: the code has no access with which it could exceed the class.
    Sandbox,
    /// The author of the tool declared it: in Rust, in the manifest, or with the doc tag `@effect`.
    Author,
    /// A trusted server declared it, for example with MCP annotations.
    Server,
    /// The default, [`EffectClass::Write`], because the class has no other source.
    #[default]
    Default,
}

/// The effect class of a tool or a call, with its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Effect {
    /// The class.
    pub class: EffectClass,
    /// The source of the class.
    pub source: EffectSource,
    /// The class that the author of untrusted code declares, if the host rejects this class because the host can prove no class.
    #[serde(rename = "claim", default, skip_serializing_if = "Option::is_none")]
    pub rejected_claim: Option<EffectClass>,
}

impl Effect {
    /// Creates an effect class with its source.
    #[must_use]
    pub fn new(class: EffectClass, source: EffectSource) -> Self {
        Self {
            class,
            source,
            rejected_claim: None,
        }
    }

    /// Returns the effect of trusted code: the class that its author declares, otherwise [`EffectClass::Write`].
    #[must_use]
    pub fn declared(class: Option<EffectClass>) -> Self {
        class.map_or_else(Self::default, |class| Self::new(class, EffectSource::Author))
    }

    /// Returns the effect of untrusted code. `proof` is the class that the host can prove. `claim` is the class that the author
    /// declares.
    ///
    /// A claim of a greater class than the proof is accepted; a claim of a smaller class is rejected. If `proof` is
    /// [`EffectClass::Write`], the host can prove no class. Then [`rejected_claim`](Self::rejected_claim) has the rejected
    /// claim, for display.
    #[must_use]
    pub fn of_untrusted(proof: EffectClass, claim: Option<EffectClass>) -> Self {
        match claim {
            Some(claim) if claim > proof => Self::new(claim, EffectSource::Author),
            Some(EffectClass::Write) => Self::new(EffectClass::Write, EffectSource::Author),
            _ if proof == EffectClass::Write => Self {
                rejected_claim: claim,
                ..Self::default()
            },
            _ => Self::new(proof, EffectSource::Sandbox),
        }
    }

    /// Returns this effect, or an effect with the given class and source if the given class is greater.
    #[must_use]
    pub fn at_least(self, class: EffectClass, source: EffectSource) -> Self {
        if class > self.class {
            Self::new(class, source)
        } else {
            self
        }
    }

    /// Returns whether the sandbox proved the class.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.source == EffectSource::Sandbox
    }
}

/// Displays as `read (proved by the sandbox)`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class;
        match (self.source, self.rejected_claim) {
            (EffectSource::Operator, _) => write!(f, "{class} (set by the operator)"),
            (EffectSource::Sandbox, _) => write!(f, "{class} (proved by the sandbox)"),
            (EffectSource::Author, _) => write!(f, "{class} (declared by its author)"),
            (EffectSource::Server, _) => write!(f, "{class} (declared by its server)"),
            (EffectSource::Default, None) => write!(f, "{class} (the default)"),
            (EffectSource::Default, Some(claim)) => {
                write!(f, "{class} (its author claims {claim}, which is not proved)")
            }
        }
    }
}

/// The access of one call at the time when the call would begin: its effect class, and the grant that the call would use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallAccess {
    /// The effect class, with its source.
    pub effect: Effect,
    /// The granted rules that apply, as texts without secret values. Empty for a tool that needs no grant.
    pub grant: Vec<String>,
    /// The granted rule that allows changes outside the run, if [`EffectClass::Read`] is not proved because of this rule.
    pub writing_rule: Option<String>,
    /// The digest of the code that would run, if it is known. An approval is not valid for other code.
    pub code_digest: Option<String>,
}

impl CallAccess {
    /// Creates the access of a call that uses no grant.
    #[must_use]
    pub fn of(effect: Effect) -> Self {
        Self {
            effect,
            ..Self::default()
        }
    }

    /// Creates the access of a call of trusted code, from the class that the definition declares.
    #[must_use]
    pub fn declared(definition: &ToolDefinition) -> Self {
        Self::of(Effect::declared(definition.effect))
    }

    /// Creates the access of a call that changes nothing.
    #[must_use]
    pub fn read() -> Self {
        Self::of(Effect::declared(Some(EffectClass::Read)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use EffectClass::{Idempotent, Read, Write};

    use super::*;

    #[test]
    fn claim_of_untrusted_code_can_only_raise_the_class() {
        let effect = Effect::of_untrusted;
        assert_eq!(effect(Read, None), Effect::new(Read, EffectSource::Sandbox));
        assert_eq!(effect(Read, Some(Read)), Effect::new(Read, EffectSource::Sandbox));
        assert_eq!(effect(Read, Some(Write)), Effect::new(Write, EffectSource::Author));
        assert_eq!(
            effect(Read, Some(Idempotent)),
            Effect::new(Idempotent, EffectSource::Author)
        );
        for claim in [Read, Idempotent] {
            let unproved_effect = effect(Write, Some(claim));
            assert_eq!(
                (unproved_effect.class, unproved_effect.source),
                (Write, EffectSource::Default)
            );
            assert_eq!(unproved_effect.rejected_claim, Some(claim), "the claim stays visible");
        }
        assert_eq!(effect(Write, Some(Write)), Effect::new(Write, EffectSource::Author));
    }

    #[test]
    fn classes_are_ordered_and_parse_from_their_display_text() {
        assert!(Read < Idempotent && Idempotent < Write);
        assert_eq!(EffectClass::default(), Write);
        for class in EffectClass::ALL {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
        let error = "readonly".parse::<EffectClass>().unwrap_err();
        assert!(error.to_string().contains("`readonly`"), "{error}");
    }

    #[test]
    fn a_raised_effect_has_the_source_of_the_greater_class() {
        let read = Effect::new(Read, EffectSource::Sandbox);
        assert_eq!(read.at_least(Read, EffectSource::Operator), read);
        assert_eq!(
            read.at_least(Write, EffectSource::Operator),
            Effect::new(Write, EffectSource::Operator)
        );
    }
}
