//! Rules for single values: environment variables, the key–value store, clocks and randomness.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::RuleError;
use super::secret_rule::check_variable_name;
use toolwit_core::limits::{ByteCount, UnitError};

/// An environment variable of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "EnvRuleFormat", into = "EnvRuleFormat")]
#[non_exhaustive]
pub struct EnvRule {
    /// The name.
    pub name: String,
    /// The value; `None` to use the value of the same variable in the host process.
    pub value: Option<String>,
}

/// The TOML format of an [`EnvRule`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvRuleFormat {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

impl EnvRule {
    /// Creates a rule for a variable. Without a value, the guest reads the value of the same variable in the host process.
    ///
    /// # Errors
    /// For an invalid name of an environment variable, and for a value with a NUL character.
    pub fn new(name: &str, value: Option<&str>) -> Result<Self, RuleError> {
        check_variable_name(name)?;
        if value.is_some_and(|value| value.contains('\0')) {
            return Err(RuleError::new(format!(
                "the value of `{name}` contains a NUL character"
            )));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        })
    }
}

impl TryFrom<EnvRuleFormat> for EnvRule {
    type Error = RuleError;

    fn try_from(format: EnvRuleFormat) -> Result<Self, RuleError> {
        Self::new(&format.name, format.value.as_deref())
    }
}

impl From<EnvRule> for EnvRuleFormat {
    fn from(rule: EnvRule) -> Self {
        Self {
            name: rule.name,
            value: rule.value,
        }
    }
}

/// Access of a plugin to its key–value store, with a limit on the size of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "KeyValueRuleFormat", into = "KeyValueRuleFormat")]
pub struct KeyValueRule {
    /// The maximum size of the store, in bytes. The size of an entry is the length of its bucket name, key and value, plus
    /// `KEY_VALUE_ENTRY_OVERHEAD_BYTES`.
    pub quota_bytes: u64,
}

/// The TOML format of a [`KeyValueRule`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyValueRuleFormat {
    quota: String,
}

impl TryFrom<KeyValueRuleFormat> for KeyValueRule {
    type Error = RuleError;

    fn try_from(format: KeyValueRuleFormat) -> Result<Self, RuleError> {
        Ok(Self {
            quota_bytes: parse_quota(&format.quota)?,
        })
    }
}

impl From<KeyValueRule> for KeyValueRuleFormat {
    fn from(rule: KeyValueRule) -> Self {
        Self {
            quota: format_quota(rule.quota_bytes),
        }
    }
}

/// Parses a quota such as `10MiB`. Returns the number of bytes.
pub(super) fn parse_quota(text: &str) -> Result<u64, RuleError> {
    let quota: Result<ByteCount, UnitError> = text.parse();
    quota
        .map(|quota| quota.0)
        .map_err(|error| RuleError::new(error.to_string()))
}

/// Formats a quota so that [`parse_quota`] returns the same number.
pub(super) fn format_quota(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS
        .into_iter()
        .find(|(unit_bytes, _)| bytes > 0 && bytes.is_multiple_of(*unit_bytes));
    unit.map_or_else(
        || bytes.to_string(),
        |(unit_bytes, name)| format!("{}{name}", bytes / unit_bytes),
    )
}

/// The time that a guest's clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ClockRule {
    /// The current time.
    Real,
    /// A fixed time, in seconds since 1970. The monotonic clock is frozen, too.
    Frozen(u64),
}

impl fmt::Display for ClockRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("the current time"),
            Self::Frozen(seconds) => write!(f, "frozen at {seconds} s after 1970"),
        }
    }
}

/// The source of a guest's random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum RandomRule {
    /// The operating system.
    Real,
    /// A generator with this seed: each instance gets the same sequence of bytes.
    Frozen(u64),
}

impl fmt::Display for RandomRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.write_str("the operating system"),
            Self::Frozen(seed) => write!(f, "the seed {seed}"),
        }
    }
}
