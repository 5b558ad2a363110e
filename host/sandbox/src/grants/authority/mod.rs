//! What one call may do: the rights of its plugin as they are now, its secrets, and what was refused to it.

mod conversation;
mod current_grants;
mod directory;
mod directory_quota;
mod key_value_store;
mod ledger;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "without a network nothing streams through it")
)]
mod redact;
mod secret;

use std::borrow::Cow;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use conversation::ConversationNumber;
pub use current_grants::read_grants_file;
pub(crate) use current_grants::{AuthorityRequest, CurrentGrants, OpenedRights, nothing};
pub(crate) use directory::OpenDirectory;
pub(crate) use directory_quota::{DirectoryQuota, ENTRY_BYTES, full};
pub use key_value_store::{KeyValueError, KeyValueStore, MemoryKeyValueStore};
pub(crate) use redact::Redactor;
#[cfg(feature = "network")]
pub(crate) use redact::StreamMask;
pub(crate) use secret::Secret;
pub use secret::{SecretError, SecretStore};

use crate::grants::{ClockRule, Denial, RandomRule};
use crate::inspect::annotations::Requirement;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolResult};

/// Refusals of one call that are told; a guest may be refused for ever.
const REFUSALS_MAX: usize = 8;

/// Gives out authority: the grants, and the store of secrets.
pub(crate) struct AuthorityProvider {
    policy: CurrentGrants,
    secrets: Option<SecretStore>,
    keyvalue: Arc<dyn KeyValueStore>,
}

/// The authority of one call, shared by all that judge for it.
#[derive(Clone)]
pub(crate) struct Authority(Arc<CallAuthority>);

impl Deref for Authority {
    type Target = CallAuthority;

    fn deref(&self) -> &CallAuthority {
        &self.0
    }
}

/// What one call may do, and what was refused to it.
pub(crate) struct CallAuthority {
    pub(crate) plugin: Arc<str>,
    pub(crate) granted: Arc<OpenedRights>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) redactor: Redactor,
    pub(crate) keyvalue: Arc<dyn KeyValueStore>,
    refusals: Mutex<Vec<Refusal>>,
    /// Whether the plugin has more than this call may use, since another plugin makes it.
    is_narrowed: bool,
}

/// Something that the host refused to a guest.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// What it wanted: `send GET https://example.com/a`.
    pub(crate) wanted: String,
    pub(crate) why: String,
    pub(crate) suggestion: String,
}

impl AuthorityProvider {
    pub(crate) fn new(
        grants: Option<PathBuf>,
        secrets: Option<PathBuf>,
        keyvalue: Option<Arc<dyn KeyValueStore>>,
        mut protected: Vec<PathBuf>,
    ) -> Result<Self, Error> {
        protected.extend(secrets.iter().cloned());
        Ok(Self {
            policy: CurrentGrants::open(grants, protected)?,
            secrets: secrets.map(SecretStore::new),
            keyvalue: keyvalue.unwrap_or_else(|| Arc::new(MemoryKeyValueStore::new())),
        })
    }

    /// Logs a warning for each grant whose plugin is not among `known`: a mistyped name grants nothing.
    pub(crate) fn warn_about_unknown_plugins<'a>(&self, known: impl Iterator<Item = &'a str>) {
        let known: std::collections::HashSet<&str> = known.collect();
        for plugin in self
            .policy
            .plugins()
            .iter()
            .filter(|plugin| !known.contains(plugin.as_str()))
        {
            tracing::warn!(plugin, "something is granted to a plugin that is not there");
        }
    }

    /// Finds out what a call may do.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the grants of the plugin cannot be read now; [`ErrorKind::MissingKey`] when a secret that
    /// is granted to it is not there.
    pub(crate) async fn of_call(
        self: &Arc<Self>,
        applicant: AuthorityRequest<'_>,
        context: &ToolContext,
    ) -> Result<Authority, Error> {
        let unexpected = |error| {
            Error::new(
                ErrorKind::Internal,
                Phase::Execute,
                "reading what is granted failed unexpectedly",
            )
            .with_source(error)
        };
        if self.policy.is_stale() {
            let own = self.clone();
            tokio::task::spawn_blocking(move || own.policy.reread())
                .await
                .map_err(unexpected)?;
        }
        let own = self.policy.granted(applicant)?;
        let granted = match applicant.caller {
            Some(caller) => own.within(caller),
            None => own.clone(),
        };
        let rules = &granted.effective.secrets;
        let secrets = if rules.is_empty() {
            Vec::new()
        } else {
            let (own, rules, context) = (self.clone(), rules.clone(), context.clone());
            let looking = tokio::task::spawn_blocking(move || secret::look_up(&rules, own.secrets.as_ref(), &context));
            looking.await.map_err(unexpected)??
        };
        Ok(Authority(Arc::new(CallAuthority {
            plugin: applicant.plugin.clone(),
            redactor: Redactor::new(secrets.iter().map(|secret| secret.value.as_str())),
            is_narrowed: !Arc::ptr_eq(&granted, &own) && granted.effective != own.effective,
            granted,
            secrets,
            keyvalue: self.keyvalue.clone(),
            refusals: Mutex::default(),
        })))
    }
}

/// Writes a word so that a shell takes it as it is: people copy the commands that they are told, and a guest chooses what it
/// asks for.
fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,#".contains(c);
    // A `#` begins a comment where a word does.
    match !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

impl CallAuthority {
    /// Refuses a call that another plugin makes, to an instance that was made with more than that plugin has.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn require_whole(&self) -> Result<(), Error> {
        if !self.is_narrowed {
            return Ok(());
        }
        let message = format!(
            "`{}` keeps an instance for the conversation, with rights that the plugin which calls it has not",
            self.plugin
        );
        Err(Error::new(ErrorKind::Denied, Phase::Execute, message)
            .with_suggestion("grant the calling plugin the same, or let the model make the call"))
    }

    /// Notes what was refused, for whoever reads how the call went.
    pub(crate) fn refuse(&self, mut refusal: Refusal) {
        for text in [&mut refusal.wanted, &mut refusal.why, &mut refusal.suggestion] {
            *text = self.redactor.text(text).into_owned();
        }
        tracing::info!(plugin = %self.plugin, wanted = refusal.wanted, why = refusal.why, "a plugin was refused");
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < REFUSALS_MAX {
            refusals.push(refusal);
        }
    }

    /// Notes what a rule denied.
    pub(crate) fn deny(&self, wanted: String, denial: &Denial, flag: &str, value: &str) {
        self.refuse(Refusal {
            wanted,
            why: denial.to_string(),
            suggestion: format!(
                "toolwit grant {} {flag} {}",
                shell_word(&self.plugin),
                shell_word(value)
            ),
        });
    }

    /// Refuses a call that lacks a value which the plugin cannot do without: as a granted variable or setting, or as a
    /// granted secret, whose value the guest need not see.
    pub(crate) fn require(&self, needs: &[Requirement]) -> Result<(), Error> {
        if needs.is_empty() {
            return Ok(());
        }
        let effective = &self.granted.effective;
        let variables = self.variables();
        let is_there = |need: &&Requirement| {
            variables
                .iter()
                .any(|(name, value)| *name == need.name && !value.is_empty())
                || self.secrets.iter().any(|secret| secret.rule.name == need.name)
                || effective.config.get(&need.name).is_some_and(|value| !value.is_empty())
        };
        match needs.iter().find(|need| !is_there(need)) {
            None => Ok(()),
            Some(need) => Err(self.lacks(need)),
        }
    }

    fn lacks(&self, need: &Requirement) -> Error {
        let (plugin, name) = (&self.plugin, &need.name);
        let what = match need.description.trim() {
            "" => String::new(),
            told => format!(" ({told})"),
        };
        let is_granted = self.granted.effective.env.iter().any(|rule| rule.name == *name);
        let suggestion = match is_granted {
            true => format!("ask the user for it; the operator sets `{name}` in the environment of the host"),
            false => format!(
                "ask the user for it; the operator gives it with `toolwit grant {plugin} --env {name}=VALUE`, or as a secret"
            ),
        };
        let message = format!("it needs `{name}`{what}, which is not there");
        Error::new(ErrorKind::MissingKey, Phase::Validate, message).with_suggestion(suggestion)
    }

    /// The variables that the guest sees.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let granted = self.granted.effective.env.iter().filter_map(|rule| {
            let value = rule.value.clone().or_else(|| secret::variable(&rule.name))?;
            Some((rule.name.clone(), value))
        });
        let exposed = self.secrets.iter().filter_map(|secret| {
            let variable = secret.rule.exposed_as.clone()?;
            Some((variable, secret.value.as_str().to_owned()))
        });
        granted.chain(exposed).collect()
    }

    pub(crate) fn frozen_clock(&self) -> Option<u64> {
        match self.granted.effective.clock {
            Some(ClockRule::Frozen(seconds)) => Some(seconds),
            _ => None,
        }
    }

    pub(crate) fn frozen_random(&self) -> Option<u64> {
        match self.granted.effective.random {
            Some(RandomRule::Frozen(seed)) => Some(seed),
            _ => None,
        }
    }

    /// Says how the call ended: without secrets, and with what was refused where it failed.
    pub(crate) fn conclude(&self, called: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        let refused = self
            .refusals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .first()
            .cloned();
        let concluded = match (called, refused) {
            (Ok(result), Some(refusal)) if result.is_error() => {
                let error = refusal.into_error();
                Err(match result.value {
                    Some(value) => error.with_details(value),
                    None => error,
                })
            }
            (Err(error), Some(refusal)) if error.kind == ErrorKind::Trap => {
                Err(refusal.into_error().with_source(error))
            }
            (called, _) => called,
        };
        if self.redactor.is_idle() {
            return concluded;
        }
        match concluded {
            Ok(result) => Ok(self.without_secrets(result)),
            Err(error) => Err(error.redacted(&|text| self.redactor.text(text).into_owned(), &|value| {
                self.redactor.value(value);
            })),
        }
    }

    fn without_secrets(&self, mut result: ToolResult) -> ToolResult {
        let clean = |text: &str| self.redactor.text(text).into_owned();
        result.for_llm = clean(&result.for_llm);
        result.for_user = result.for_user.as_deref().map(clean);
        result.log = result.log.as_deref().map(|log| clean(log).into());
        if let Some(value) = &mut result.value {
            self.redactor.value(value);
        }
        for artifact in &mut result.artifacts {
            artifact.kind = clean(&artifact.kind);
            self.redactor.value(&mut artifact.value);
        }
        result
    }
}

impl Refusal {
    fn into_error(self) -> Error {
        Error::new(
            ErrorKind::Denied,
            Phase::Execute,
            format!("it may not {}: {}", self.wanted, self.why),
        )
        .with_suggestion(self.suggestion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: C21
    #[test]
    fn a_command_to_copy_runs_nothing_of_what_it_names() {
        assert_eq!(shell_word("text#slugify"), "text#slugify");
        assert_eq!(shell_word("x; touch /tmp/y #"), "'x; touch /tmp/y #'");
        assert_eq!(shell_word("GET http://h/$(id)\""), "'GET http://h/$(id)\"'");
        assert_eq!(shell_word("it's `id`"), r"'it'\''s `id`'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("# gone"), "'# gone'");
    }
}
