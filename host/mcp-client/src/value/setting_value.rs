//! The value of a setting of a server, which can come from a secret, the environment or the context.

use std::fmt;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

use super::source::ValueSource;
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};

/// The value of a setting of a server, such as an argument, a header or an environment variable of its process: literal
/// text, a secret, an environment variable of the host, a value of the caller's context, or several of them in sequence.
///
/// In `mcp.toml`, literal text is a string. Every other source is a table with an optional `prefix`:
/// `{ secret = "github-token" }`, `{ env = "TOKEN" }` or `{ context = "token" }`. The `Display` and `Debug` forms show
/// literal text, and only the names of the other sources.
///
/// ```
/// use toolwit_mcp_client::SettingValue;
///
/// let header = SettingValue::secret("github-token").with_prefix("token ");
/// assert_eq!(header.to_string(), "token {secret github-token}");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SettingValue(Vec<Part>);

/// A part of a value: literal text, or the name of a secret, of an environment variable or of a value of the context.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Text(String),
    Secret(String),
    Variable { name: String, default: Option<String> },
    Context(String),
}

impl SettingValue {
    /// Returns this text as a value.
    #[must_use]
    pub fn text(value: impl Into<String>) -> Self {
        Self(vec![Part::Text(value.into())])
    }

    /// Returns the value of a secret; see [`ValueSource::secret`].
    #[must_use]
    pub fn secret(name: impl Into<String>) -> Self {
        Self(vec![Part::Secret(name.into())])
    }

    /// Returns the value of an environment variable of the host; see [`ValueSource::variable`].
    #[must_use]
    pub fn variable(name: impl Into<String>) -> Self {
        Self(vec![Part::Variable {
            name: name.into(),
            default: None,
        }])
    }

    /// Returns a value of the caller's [`ToolContext`], such as the token of the end user.
    #[must_use]
    pub fn context(key: impl Into<String>) -> Self {
        Self(vec![Part::Context(key.into())])
    }

    /// Puts text before the value.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.0.insert(0, Part::Text(prefix.into()));
        self
    }

    /// Parses a template in which `${NAME}` and `${NAME:-default}` are environment variables, as in a `.mcp.json`. The
    /// variables are read later, when the value is needed. A `${` without a `}` is literal text.
    #[must_use]
    pub fn from_template(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut unparsed = text;
        while let Some((before, after)) = unparsed.split_once("${") {
            let Some((inside, after)) = after.split_once('}') else {
                break;
            };
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (inside, None),
            };
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Variable {
                name: name.to_owned(),
                default,
            });
            unparsed = after;
        }
        if !unparsed.is_empty() || parts.is_empty() {
            parts.push(Part::Text(unparsed.to_owned()));
        }
        Self(parts)
    }

    /// Returns the keys of the caller's context that the value uses.
    pub fn context_keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Context(key) => Some(key.as_str()),
            _ => None,
        })
    }

    /// Returns whether a part of the value comes from a secret or from the context of the caller.
    pub(crate) fn has_secret(&self) -> bool {
        let is_secret = |part: &Part| matches!(part, Part::Secret(_) | Part::Context(_));
        self.0.iter().any(is_secret)
    }

    /// Returns the name of the secret, if the value consists of exactly one secret.
    pub(crate) fn secret_name(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Secret(name)] => Some(name),
            _ => None,
        }
    }

    /// Returns the value: reads each part from its source, and joins the parts.
    ///
    /// # Errors
    /// [`ErrorKind::MissingKey`] if a secret, a variable without a default or a value of the context does not exist. The
    /// error of [`ValueSource::secret`] if a secret cannot be read.
    pub(crate) fn resolve(&self, values: &dyn ValueSource, context: &ToolContext) -> Result<Zeroizing<String>, Error> {
        let parts = self.resolved_parts(values, context)?;
        Ok(Zeroizing::new(parts.iter().map(|part| part.text.as_str()).collect()))
    }

    /// Returns the parts of the value, each read from its source.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub(crate) fn resolved_parts(
        &self,
        values: &dyn ValueSource,
        context: &ToolContext,
    ) -> Result<Vec<ResolvedPart<'_>>, Error> {
        self.0.iter().map(|part| part.resolve(values, context)).collect()
    }
}

/// A part of a value that was read from its source.
pub(crate) struct ResolvedPart<'s> {
    pub(crate) text: Zeroizing<String>,
    pub(crate) origin: PartOrigin<'s>,
}

/// The source of a part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartOrigin<'s> {
    /// The configuration.
    Text,
    /// A secret, or the context of the caller.
    Secret,
    /// The environment variable with this name.
    Variable(&'s str),
}

impl Part {
    fn resolve(&self, values: &dyn ValueSource, context: &ToolContext) -> Result<ResolvedPart<'_>, Error> {
        let (text, origin) = match self {
            Self::Text(text) => (Zeroizing::new(text.clone()), PartOrigin::Text),
            Self::Secret(name) => {
                let secret = values.secret(name)?;
                let secret = secret.ok_or_else(|| missing_key(&format!("the secret `{name}` does not exist")))?;
                (secret, PartOrigin::Secret)
            }
            Self::Variable { name, default } => match (values.variable(name), default) {
                (Some(variable), _) => (Zeroizing::new(variable), PartOrigin::Variable(name)),
                (None, Some(default)) => (Zeroizing::new(default.clone()), PartOrigin::Text),
                (None, None) => {
                    return Err(missing_key(&format!("the environment variable `{name}` is not set")));
                }
            },
            Self::Context(key) => {
                let value = context.text(key);
                let value = value.ok_or_else(|| missing_key(&format!("the context of the call has no `{key}`")))?;
                (Zeroizing::new(value.to_owned()), PartOrigin::Secret)
            }
        };
        Ok(ResolvedPart { text, origin })
    }
}

fn missing_key(message: &str) -> Error {
    Error::new(ErrorKind::MissingKey, Phase::Registry, message)
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Secret(name) => write!(f, "{{secret {name}}}"),
            Part::Variable { name, .. } => write!(f, "{{env {name}}}"),
            Part::Context(key) => write!(f, "{{context {key}}}"),
        })
    }
}

impl fmt::Debug for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// Serialises as its `Display` form.
impl Serialize for SettingValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The form of a value in `mcp.toml`.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected text, or a table with one of the keys `secret`, `env` and `context`"
)]
enum SettingValueForm {
    Text(String),
    Source(SourceForm),
}

/// The table of a value that is not literal text. It has exactly one of the keys `secret`, `env` and `context`,
/// and optionally a `prefix`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceForm {
    secret: Option<String>,
    env: Option<String>,
    context: Option<String>,
    prefix: Option<String>,
}

impl<'de> Deserialize<'de> for SettingValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = match SettingValueForm::deserialize(deserializer)? {
            SettingValueForm::Text(text) => return Ok(Self::text(text)),
            SettingValueForm::Source(source) => source,
        };
        let value = match (source.secret, source.env, source.context) {
            (Some(name), None, None) => Self::secret(name),
            (None, Some(name), None) => Self::variable(name),
            (None, None, Some(key)) => Self::context(key),
            _ => {
                return Err(de::Error::custom(
                    "a value must have exactly one of the keys `secret`, `env` and `context`",
                ));
            }
        };
        Ok(match source.prefix {
            Some(prefix) => value.with_prefix(prefix),
            None => value,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A source with the secret `key` and the variable `HOME`.
    struct Values;

    impl ValueSource for Values {
        fn secret(&self, name: &str) -> Result<Option<Zeroizing<String>>, Error> {
            Ok((name == "key").then(|| Zeroizing::new("hunter22".to_owned())))
        }

        fn variable(&self, name: &str) -> Option<String> {
            (name == "HOME").then(|| "/srv/ada".to_owned())
        }
    }

    #[test]
    fn a_value_comes_from_its_source_and_a_missing_value_is_an_error() {
        let context = ToolContext::new().with("token", "t-1");
        let resolve = |value: SettingValue| value.resolve(&Values, &context).map(|text| text.to_string());
        assert_eq!(
            resolve(SettingValue::secret("key").with_prefix("token ")).unwrap(),
            "token hunter22"
        );
        assert_eq!(resolve(SettingValue::context("token")).unwrap(), "t-1");
        assert_eq!(
            resolve(SettingValue::from_template("${HOME}/x:${PORT:-80}")).unwrap(),
            "/srv/ada/x:80"
        );
        assert_eq!(
            resolve(SettingValue::from_template("${unclosed")).unwrap(),
            "${unclosed"
        );
        for missing in [
            SettingValue::secret("other"),
            SettingValue::variable("OTHER"),
            SettingValue::context("other"),
        ] {
            assert_eq!(resolve(missing).unwrap_err().kind, ErrorKind::MissingKey);
        }
    }

    #[test]
    fn debug_form_shows_names_of_sources_and_no_values() {
        assert_eq!(
            format!("{:?}", SettingValue::from_template("Bearer ${TOKEN}")),
            "Bearer {env TOKEN}"
        );
    }

    #[test]
    fn a_table_has_exactly_one_source() {
        let read = |text: &str| toml::from_str::<std::collections::BTreeMap<String, SettingValue>>(text);
        let read_value = |text: &str| read(text).map(|mut values| values.remove("a").unwrap());
        assert_eq!(
            read_value("a = '${HOME}'").unwrap(),
            SettingValue::text("${HOME}"),
            "`${{HOME}}` is literal text in `mcp.toml`"
        );
        assert_eq!(
            read_value("a = { secret = 'key', prefix = 'Bearer ' }").unwrap(),
            SettingValue::secret("key").with_prefix("Bearer ")
        );
        for invalid in [
            "a = {}",
            "a = { secret = 'a', env = 'b' }",
            "a = { file = 'x' }",
            "a = 3",
        ] {
            assert!(read(invalid).is_err(), "{invalid}");
        }
    }
}
