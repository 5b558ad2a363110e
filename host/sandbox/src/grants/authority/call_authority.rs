//! The authority of one call.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::key_value_store::KeyValueStore;
use super::redact::Redactor;
use super::refusal::{MissingGrant, Refusal};
use super::rights::OpenedRights;
use super::secret::Secret;
use crate::grants::Denial;
use crate::inspect::annotations::Requirement;
use toolwit_core::{Error, ErrorKind, Phase, ToolResult};

/// The maximum number of recorded refusals per call. The number of attempts of a guest is not limited.
const REFUSALS_MAX: usize = 8;

/// The authority of one call, shared by the gates of its instance.
#[derive(Clone)]
pub(crate) struct Authority(Arc<CallAuthority>);

impl Authority {
    pub(super) fn new(authority: CallAuthority) -> Self {
        Self(Arc::new(authority))
    }
}

impl Deref for Authority {
    type Target = CallAuthority;

    fn deref(&self) -> &CallAuthority {
        &self.0
    }
}

/// The rights, secrets and variables of one call, and its refused accesses.
pub(crate) struct CallAuthority {
    pub(crate) plugin: Arc<str>,
    pub(crate) rights: Arc<OpenedRights>,
    pub(crate) secrets: Vec<Secret>,
    /// The environment variables that the guest sees.
    pub(crate) variables: Vec<(String, Zeroizing<String>)>,
    pub(crate) redactor: Redactor,
    pub(crate) keyvalue: Arc<dyn KeyValueStore>,
    refusals: Mutex<Vec<Refusal>>,
    /// Whether another plugin makes the call and has fewer rights than this one.
    is_narrowed: bool,
}

impl CallAuthority {
    pub(super) fn new(
        plugin: Arc<str>,
        rights: Arc<OpenedRights>,
        secrets: Vec<Secret>,
        variables: Vec<(String, Zeroizing<String>)>,
        keyvalue: Arc<dyn KeyValueStore>,
        is_narrowed: bool,
    ) -> Self {
        Self {
            redactor: Redactor::new(secrets.iter().map(|secret| secret.value.as_str())),
            plugin,
            rights,
            secrets,
            variables,
            keyvalue,
            refusals: Mutex::default(),
            is_narrowed,
        }
    }

    /// Refuses a call by another plugin that has fewer rights than the session instance was created with.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn require_full_rights(&self) -> Result<(), Error> {
        if !self.is_narrowed {
            return Ok(());
        }
        let message = format!(
            "the session instance of `{}` has rights that the calling plugin does not have",
            self.plugin
        );
        Err(Error::new(ErrorKind::Denied, Phase::Execute, message)
            .with_suggestion("grant the same to the calling plugin, or let the model make the call"))
    }

    /// Records a refusal for the result of the call.
    pub(crate) fn refuse(&self, mut refusal: Refusal) {
        let Refusal {
            access,
            reason,
            suggestion,
            missing_grant,
        } = &mut refusal;
        let value = missing_grant.as_mut().map(|missing| &mut missing.value);
        for text in [access, reason, suggestion].into_iter().chain(value) {
            *text = self.redactor.text(text).into_owned();
        }
        tracing::info!(plugin = %self.plugin, access = refusal.access, reason = refusal.reason, "an access was refused");
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < REFUSALS_MAX {
            refusals.push(refusal);
        }
    }

    /// Records a denied access. `key` and `value` describe the grant that would allow it.
    pub(crate) fn deny(&self, access: String, denial: &Denial, key: &'static str, value: &str) {
        let missing_grant = self.missing_grant(key, value);
        self.refuse(Refusal::for_missing_grant(access, denial.to_string(), missing_grant));
    }

    fn missing_grant(&self, key: &'static str, value: &str) -> MissingGrant {
        MissingGrant {
            plugin: self.plugin.to_string(),
            key,
            value: value.to_owned(),
            cause: None,
        }
    }

    /// Checks that every value that the plugin requires exists as a variable, a setting or a secret. A secret need not be
    /// exposed to the guest.
    ///
    /// # Errors
    /// [`ErrorKind::MissingKey`].
    pub(crate) fn require(&self, requirements: &[Requirement]) -> Result<(), Error> {
        let effective = &self.rights.effective;
        let exists = |required: &&Requirement| {
            let name = &required.name;
            let has_variable = |(variable, value): &(String, Zeroizing<String>)| variable == name && !value.is_empty();
            self.variables.iter().any(has_variable)
                || self.secrets.iter().any(|secret| secret.rule.name == *name)
                || effective.setting(name).is_some_and(|value| !value.is_empty())
        };
        match requirements.iter().find(|required| !exists(required)) {
            None => Ok(()),
            Some(required) => Err(self.missing_value(required)),
        }
    }

    fn missing_value(&self, required: &Requirement) -> Error {
        let name = &required.name;
        let purpose = match required.description.trim() {
            "" => String::new(),
            description => format!(" ({description})"),
        };
        let message = format!("it needs `{name}`{purpose}, which is not set");
        let error = Error::new(ErrorKind::MissingKey, Phase::Validate, message);
        if self.rights.effective.rules.env.iter().any(|rule| rule.name == *name) {
            return error.with_suggestion(format!(
                "ask the user for it; the operator sets `{name}` in the environment of the host"
            ));
        }
        error
            .with_suggestion(format!(
                "ask the user for it; the operator grants it to `{}` as a value or a secret",
                self.plugin
            ))
            .with_source(self.missing_grant(self.rights.effective.declared.value_key(), name))
    }

    /// Finishes the outcome of a call: redacts secrets, and reports the first refusal if the call failed.
    pub(crate) fn conclude(&self, called: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        let called = self.redact(called);
        let refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(refusal) = refusals.first() else {
            return called;
        };
        match called {
            Ok(result) if result.is_error() => {
                let error = refusal.clone().into_error(None).with_log(result.log);
                Err(match result.value {
                    Some(value) => error.with_details(value),
                    None => error,
                })
            }
            Err(error) if error.kind == ErrorKind::Trap => {
                let log = error.log.clone();
                Err(refusal.clone().into_error(Some(error)).with_log(log))
            }
            called => called,
        }
    }

    fn redact(&self, called: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        if self.redactor.is_idle() {
            return called;
        }
        match called {
            Ok(result) => Ok(self.redact_result(result)),
            Err(error) => Err(error.redacted(&|text| self.redactor.text(text).into_owned(), &|value| {
                self.redactor.value(value);
            })),
        }
    }

    fn redact_result(&self, mut result: ToolResult) -> ToolResult {
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
