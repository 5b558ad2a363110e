//! The secret store, and the lookup of secrets at each call.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::grants::{SecretRule, SecretSource};
use toolwit_core::ToolContext;
use toolwit_core::file::{LockedFile, read_private_text_file};
use toolwit_core::limits::{SECRET_BYTES_MAX, SECRETS_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};

/// The minimum length of a value, in bytes. Shorter texts occur in results by chance, so they cannot be redacted.
const VALUE_BYTES_MIN: usize = 8;

/// A secret that cannot be used, or an error of the secret store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The secret has no value.
    #[error("the secret `{name}` does not exist in {location}")]
    Missing {
        /// The secret's name.
        name: String,
        /// The source in which it was looked up.
        location: SecretSource,
    },
    /// The value is too short or too long or contains a control character, or the name is not valid.
    #[error("the secret `{name}` {why}")]
    Unusable {
        /// The secret's name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The store could not be locked, read or written, or is invalid.
    #[error("the secret store {path} {why}")]
    Store {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// Values by name.
type ValuesByName = BTreeMap<String, Zeroizing<String>>;

/// Secrets that the application provides, by name. Grants refer to them in the same way as to stored secrets. They
/// take precedence over stored secrets with the same name. Their values are wiped from memory when they are dropped.
///
/// ```
/// use toolwit_sandbox::SecretValues;
///
/// let mut secrets = SecretValues::default();
/// secrets.set("weather-key", "correct horse battery");
/// assert!(!format!("{secrets:?}").contains("horse"));
/// ```
#[derive(Clone, Default)]
pub struct SecretValues(ValuesByName);

impl SecretValues {
    /// Sets a value. Invalid names and values are refused when the runtime is created.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), Zeroizing::new(value.into()));
    }

    /// Checks all names and values.
    ///
    /// # Errors
    /// [`SecretError::Unusable`] for a name that no grant can refer to, and for a value that is too short to be
    /// redacted, is longer than [`SECRET_BYTES_MAX`], or contains a control character.
    pub(super) fn check(&self) -> Result<(), SecretError> {
        self.0.iter().try_for_each(|(name, value)| check_secret(name, value))
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A secret of a call. Its value is wiped from memory when it is dropped.
#[derive(Clone)]
pub(crate) struct Secret {
    pub(crate) rule: SecretRule,
    pub(crate) value: Zeroizing<String>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("name", &self.rule.name)
            .finish_non_exhaustive()
    }
}

/// A TOML file of secrets that only its owner may read, with one line `name = "value"` per secret.
///
/// Changes replace the file atomically under a lock.
///
/// ```
/// use toolwit_sandbox::SecretStore;
///
/// # fn example() -> Result<(), toolwit_sandbox::SecretError> {
/// # let directory = tempfile::tempdir().unwrap();
/// let store = SecretStore::new(directory.path().join("secrets.toml"));
/// store.set("weather-key", "correct horse battery")?;
/// assert_eq!(store.names()?, ["weather-key"]);
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct SecretStore {
    path: PathBuf,
}

impl SecretStore {
    /// Creates a handle to the file at `path`. The file need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists the names of the secrets.
    ///
    /// # Errors
    /// [`SecretError::Store`].
    pub fn names(&self) -> Result<Vec<String>, SecretError> {
        Ok(self.read()?.keys().cloned().collect())
    }

    /// Returns the value of a secret, or `None` if it does not exist. Host programs use this for requests to servers
    /// that the user configured. Plugins get secrets only through grants.
    ///
    /// # Errors
    /// [`SecretError::Store`]; [`SecretError::Unusable`] for a value that is too short to be redacted, is longer than
    /// [`SECRET_BYTES_MAX`], or contains a control character.
    pub fn value(&self, name: &str) -> Result<Option<Zeroizing<String>>, SecretError> {
        let value = self.read()?.remove(name);
        value.iter().try_for_each(|value| check_value(name, value))?;
        Ok(value)
    }

    /// Stores a value under a name. Returns whether it replaced an earlier value.
    ///
    /// # Errors
    /// [`SecretError::Unusable`] for a name that is not valid, and for a value that is too short to be redacted, is
    /// longer than [`SECRET_BYTES_MAX`], or contains a control character; [`SecretError::Store`].
    pub fn set(&self, name: &str, value: &str) -> Result<bool, SecretError> {
        check_secret(name, value)?;
        let file = self.lock()?;
        let mut secrets = self.read()?;
        let earlier = secrets.insert(name.to_owned(), Zeroizing::new(value.to_owned()));
        self.write(&file, &secrets)?;
        Ok(earlier.is_some())
    }

    /// Removes a secret. Returns whether it existed.
    ///
    /// # Errors
    /// [`SecretError::Store`].
    pub fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let file = self.lock()?;
        let mut secrets = self.read()?;
        let existed = secrets.remove(name).is_some();
        if existed {
            self.write(&file, &secrets)?;
        }
        Ok(existed)
    }

    fn read(&self) -> Result<ValuesByName, SecretError> {
        let text = match read_private_text_file(&self.path, SECRETS_BYTES_MAX) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(ValuesByName::new()),
            Err(error) => return Err(self.store_error(format!("could not be read: {error}"))),
        };
        let table: toml::Table = text.parse().map_err(|error| self.parse_error(&text, &error))?;
        // Moves the values, because a copy that remained in the table would not be wiped from memory.
        let require_text = |(name, value)| match value {
            toml::Value::String(value) => Ok((name, Zeroizing::new(value))),
            _ => Err(self.store_error(format!("has a value at `{name}` that is not text"))),
        };
        table.into_iter().map(require_text).collect()
    }

    fn lock(&self) -> Result<LockedFile, SecretError> {
        LockedFile::acquire(&self.path).map_err(|error| self.store_error(format!("could not be locked: {error}")))
    }

    fn write(&self, file: &LockedFile, secrets: &ValuesByName) -> Result<(), SecretError> {
        let failed = |error: std::io::Error| self.store_error(format!("could not be written: {error}"));
        let lines: BTreeMap<&str, &str> = secrets
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let text =
            Zeroizing::new(toml::to_string(&lines).map_err(|_| self.store_error("could not be written as TOML"))?);
        file.replace(text.as_bytes()).map_err(failed)
    }

    /// Creates the error for a file that is not valid TOML. Omits the message of the parser, which would quote the line
    /// and disclose the secret.
    fn parse_error(&self, text: &str, error: &toml::de::Error) -> SecretError {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        self.store_error(format!(
            "is invalid at line {line}: each line is `name = \"value\"`, and each name occurs once"
        ))
    }

    fn store_error(&self, why: impl Into<String>) -> SecretError {
        SecretError::Store {
            path: self.path.clone(),
            why: why.into(),
        }
    }
}

fn check_secret(name: &str, value: &str) -> Result<(), SecretError> {
    if crate::grants::check_name(name).is_err() {
        return Err(SecretError::Unusable {
            name: name.escape_debug().to_string(),
            why: "has an invalid name: use at most 128 letters, digits, `-`, `_` and, after the first character, `.`",
        });
    }
    check_value(name, value)
}

fn check_value(name: &str, value: &str) -> Result<(), SecretError> {
    let unusable = |why| SecretError::Unusable {
        name: name.to_owned(),
        why,
    };
    if value.len() < VALUE_BYTES_MIN {
        return Err(unusable("is shorter than 8 bytes, so it cannot be redacted"));
    }
    if value.len() as u64 > SECRET_BYTES_MAX {
        return Err(unusable("is longer than 64 KiB, the limit of a secret"));
    }
    if value.chars().any(char::is_control) {
        return Err(unusable("contains a line break or another control character"));
    }
    Ok(())
}

/// The granted secrets that have a value, and the rules of the secrets without a value.
#[derive(Default)]
pub(crate) struct LookedUpSecrets {
    pub(crate) secrets: Vec<Secret>,
    pub(crate) missing: Vec<SecretRule>,
}

impl LookedUpSecrets {
    /// Returns the secrets if each granted secret has a value.
    ///
    /// # Errors
    /// [`SecretError::Missing`] for the first missing secret.
    pub(crate) fn require_all(self) -> Result<Vec<Secret>, SecretError> {
        match self.missing.first() {
            Some(rule) => Err(SecretError::Missing {
                name: rule.name.clone(),
                location: rule.source,
            }),
            None => Ok(self.secrets),
        }
    }
}

/// The sources of granted secrets that the host holds: all except the environment and the conversation.
pub(super) struct SecretLookup {
    /// The secrets of the application.
    pub(super) values: SecretValues,
    pub(super) store: Option<SecretStore>,
}

impl SecretLookup {
    /// Looks up granted secrets, each in the source that its rule names. Reads the store if a rule needs a secret of
    /// the store that the application does not provide. Without a context, secrets of the conversation are skipped, and
    /// are not in the result.
    ///
    /// # Errors
    /// [`SecretError::Store`] and [`SecretError::Unusable`].
    pub(super) fn look_up(
        &self,
        rules: &[SecretRule],
        context: Option<&ToolContext>,
    ) -> Result<LookedUpSecrets, SecretError> {
        let needs_store =
            |rule: &SecretRule| rule.source == SecretSource::Store && !self.values.0.contains_key(&rule.name);
        let stored = match self.store.as_ref().filter(|_| rules.iter().any(needs_store)) {
            Some(store) => store.read()?,
            None => ValuesByName::new(),
        };
        let mut looked_up = LookedUpSecrets::default();
        for rule in rules {
            let value = match (rule.source, context) {
                (SecretSource::Environment, _) => host_variable(&rule.name).map(Zeroizing::new),
                (SecretSource::Conversation, None) => continue,
                (SecretSource::Conversation, Some(context)) => {
                    context.text(&rule.name).map(|value| Zeroizing::new(value.to_owned()))
                }
                (SecretSource::Store, _) => self
                    .values
                    .0
                    .get(&rule.name)
                    .or_else(|| stored.get(&rule.name))
                    .cloned(),
            };
            match value {
                None => looked_up.missing.push(rule.clone()),
                Some(value) => {
                    check_value(&rule.name, &value)?;
                    looked_up.secrets.push(Secret {
                        rule: rule.clone(),
                        value,
                    });
                }
            }
        }
        Ok(looked_up)
    }
}

/// Reads an environment variable of the host process. Returns `None` if it is not set or not valid Unicode.
#[expect(clippy::disallowed_methods, reason = "the operator's grant names this variable")]
pub(crate) fn host_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl From<SecretError> for Error {
    fn from(error: SecretError) -> Self {
        let suggestion = match &error {
            SecretError::Missing { .. } => "the operator or the application must provide it".to_owned(),
            SecretError::Unusable { .. } => "use a valid name, and a value of 8 bytes to 64 KiB in one line".to_owned(),
            SecretError::Store { .. } => "fix the file, or name another one".to_owned(),
        };
        // A missing secret can be provided before the next call. All other errors are errors of the configuration.
        let (kind, phase) = match &error {
            SecretError::Missing { .. } => (ErrorKind::MissingKey, Phase::Validate),
            _ => (ErrorKind::Configuration, Phase::Execute),
        };
        Error::new(kind, phase, error.to_string())
            .with_suggestion(suggestion)
            .with_source(error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_is_too_long_is_refused_from_the_store_and_the_application() {
        let longest = "x".repeat(usize::try_from(SECRET_BYTES_MAX).unwrap());
        let too_long = format!("{longest}x");
        let directory = tempfile::tempdir().unwrap();
        let store = SecretStore::new(directory.path().join("secrets.toml"));
        store.set("key", &longest).unwrap();
        assert_eq!(store.value("key").unwrap().unwrap().len(), longest.len());
        let is_too_long = |error: &SecretError| error.to_string().contains("longer than 64 KiB");
        assert!(is_too_long(&store.set("other", &too_long).unwrap_err()));

        // The operator adds a long value to the file in an editor.
        let text = std::fs::read_to_string(store.path()).unwrap();
        std::fs::write(store.path(), format!("{text}long = \"{too_long}\"\n")).unwrap();
        assert!(is_too_long(&store.value("long").unwrap_err()));
        assert_eq!(store.value("key").unwrap().unwrap().len(), longest.len());
        assert_eq!(store.names().unwrap(), ["key", "long"]);

        let rule = |name: &str| SecretRule {
            name: name.to_owned(),
            source: SecretSource::Store,
            target: None,
            exposed_as: Some("KEY".to_owned()),
        };
        let mut values = SecretValues::default();
        let lookup = SecretLookup {
            values: values.clone(),
            store: Some(store),
        };
        assert_eq!(lookup.look_up(&[rule("key")], None).unwrap().secrets.len(), 1);
        assert!(is_too_long(&lookup.look_up(&[rule("long")], None).err().unwrap()));
        values.set("long", too_long);
        assert!(is_too_long(&values.check().unwrap_err()));
    }
}
