//! Where the values of secrets come from, at each call.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::grants::{SecretRule, SecretSource};
use toolwit_core::ToolContext;
use toolwit_core::{Error, ErrorKind, Phase};

/// The largest store.
const STORE_BYTES_MAX: u64 = 1 << 20;

/// The shortest value that can be kept out of results: what is shorter stands in them by chance.
const VALUE_BYTES_MIN: usize = 8;

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// It is not where the grant says.
    #[error("there is no secret `{name}` in {place}")]
    Missing {
        /// The secret's name.
        name: String,
        /// Where it was looked for.
        place: &'static str,
    },
    /// It is too short, or could not be sent.
    #[error("the secret `{name}` {why}")]
    Unusable {
        /// The secret's name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The store could not be read or written.
    #[error("the store of secrets {path} {why}")]
    Store {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// The values of a store, by name.
type Values = BTreeMap<String, Zeroizing<String>>;

/// A secret of a call. Its value is wiped from memory with it.
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

/// Secrets in a file that only its owner may read: a line `name = "value"` for each, in TOML.
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
    /// Names the file, which need not be there yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the file.
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

    /// Keeps a value under a name.
    ///
    /// # Errors
    /// [`SecretError::Unusable`] for a value that is too short to be kept out of results, or could not be sent;
    /// [`SecretError::Store`].
    pub fn set(&self, name: &str, value: &str) -> Result<(), SecretError> {
        if crate::grants::check_name(name).is_err() {
            return Err(self.failed("takes names of letters, digits, `-`, `_` and `.` only"));
        }
        check_value(name, value)?;
        let mut secrets = self.read()?;
        secrets.insert(name.to_owned(), Zeroizing::new(value.to_owned()));
        self.write(&secrets)
    }

    /// Forgets a secret. Returns whether it was there.
    ///
    /// # Errors
    /// [`SecretError::Store`].
    pub fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let mut secrets = self.read()?;
        let was_there = secrets.remove(name).is_some();
        if was_there {
            self.write(&secrets)?;
        }
        Ok(was_there)
    }

    fn read(&self) -> Result<Values, SecretError> {
        let metadata = match std::fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Values::new()),
            Err(error) => return Err(self.failed(format!("could not be read: {error}"))),
        };
        if !metadata.is_file() || metadata.len() > STORE_BYTES_MAX {
            return Err(self.failed("is no file of a usual size"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            if metadata.permissions().mode() & 0o077 != 0 {
                return Err(self.failed("can be read by others; close it with `chmod 600`"));
            }
        }
        let text = std::fs::read_to_string(&self.path).map(Zeroizing::new);
        let text = text.map_err(|error| self.failed(format!("could not be read: {error}")))?;
        // The parser's own message would quote the line.
        let table: toml::Table = text.parse().map_err(|_| self.failed("is no valid TOML"))?;
        // Moved, not copied: these are the bytes that are wiped.
        let text_of = |(name, value)| match value {
            toml::Value::String(value) => Ok((name, Zeroizing::new(value))),
            _ => Err(self.failed(format!("has a value at `{name}` that is no text"))),
        };
        table.into_iter().map(text_of).collect()
    }

    fn write(&self, secrets: &Values) -> Result<(), SecretError> {
        let failed = |error: std::io::Error| self.failed(format!("could not be written: {error}"));
        let lines: BTreeMap<&str, &str> = secrets
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let text = Zeroizing::new(toml::to_string(&lines).map_err(|_| self.failed("could not be written as TOML"))?);
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        crate::grants::file::private_file::replace(&self.path, text.as_bytes()).map_err(failed)
    }

    fn failed(&self, why: impl Into<String>) -> SecretError {
        SecretError::Store {
            path: self.path.clone(),
            why: why.into(),
        }
    }
}

fn check_value(name: &str, value: &str) -> Result<(), SecretError> {
    let unusable = |why| SecretError::Unusable {
        name: name.to_owned(),
        why,
    };
    if value.len() < VALUE_BYTES_MIN {
        return Err(unusable(
            "is shorter than 8 bytes, so that it could not be kept out of results",
        ));
    }
    if value.chars().any(char::is_control) {
        return Err(unusable("holds a line break or another control character"));
    }
    Ok(())
}

/// Looks up the secrets of a call. Reads the store when one is in it.
///
/// # Errors
/// For a secret that is not there, so that no request goes out without it.
pub(crate) fn look_up(
    rules: &[SecretRule],
    store: Option<&SecretStore>,
    context: &ToolContext,
) -> Result<Vec<Secret>, SecretError> {
    let needs_store = rules.iter().any(|rule| rule.source == SecretSource::Store);
    let stored = match store.filter(|_| needs_store) {
        Some(store) => store.read()?,
        None => Values::new(),
    };
    let found = rules.iter().map(|rule| {
        let (value, place) = match rule.source {
            SecretSource::Environment => (variable(&rule.name).map(Zeroizing::new), "the host's environment"),
            SecretSource::Conversation => {
                let value = context.text(&rule.name).map(|value| Zeroizing::new(value.to_owned()));
                (value, "the conversation")
            }
            _ => (stored.get(&rule.name).cloned(), "the store of secrets"),
        };
        let value = value.ok_or_else(|| SecretError::Missing {
            name: rule.name.clone(),
            place,
        })?;
        check_value(&rule.name, &value)?;
        Ok(Secret {
            rule: rule.clone(),
            value,
        })
    });
    found.collect()
}

/// Reads a variable of the host's process.
#[expect(clippy::disallowed_methods, reason = "the operator's grant names this variable")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl From<SecretError> for Error {
    fn from(error: SecretError) -> Self {
        let suggestion = match &error {
            SecretError::Missing {
                name,
                place: "the store of secrets",
            } => format!("set it with `toolwit secret set {name}`"),
            SecretError::Missing { place, .. } => format!("set it in {place}, or change where the grant looks for it"),
            SecretError::Unusable { .. } => "use a value that is longer and of one line".to_owned(),
            SecretError::Store { .. } => "see to the file, or name another one".to_owned(),
        };
        // What is missing can be asked for; what is wrong must be mended by the operator.
        let (kind, phase) = match &error {
            SecretError::Missing { .. } => (ErrorKind::MissingKey, Phase::Validate),
            _ => (ErrorKind::Configuration, Phase::Execute),
        };
        Error::new(kind, phase, error.to_string())
            .with_suggestion(suggestion)
            .with_source(error)
    }
}
