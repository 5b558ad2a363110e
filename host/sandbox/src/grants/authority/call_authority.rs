//! The authority of one call.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeroize::Zeroizing;

use super::denial_log::{DenialLog, DenialNotice, denied_environment, lost_grant, missing_grant};
use super::key_value_store::KeyValueStore;
use super::rights::OpenedRights;
use super::secret::Secret;
use crate::grants::redact::Redactor;
use crate::grants::{AccessMode, AccessRequest, Denial};
use crate::inspect::annotations::Requirement;
use toolwit_core::text::printable;
use toolwit_core::{DeniedAccess, Error, ErrorKind, Phase, ToolResult};

/// The maximum number of recorded allowed accesses per call, because a guest can make any number of accesses.
const ALLOWED_ACCESSES_MAX: usize = 64;

/// The authority of one call, shared by the host functions of its instance.
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

/// The rights, secrets and variables of one call, and the record of its accesses.
pub(crate) struct CallAuthority {
    pub(crate) plugin: Arc<str>,
    pub(crate) rights: Arc<OpenedRights>,
    pub(crate) secrets: Vec<Secret>,
    /// The environment variables that the guest sees.
    pub(crate) variables: Vec<(String, Zeroizing<String>)>,
    pub(crate) redactor: Redactor,
    pub(crate) keyvalue: Arc<dyn KeyValueStore>,
    /// The denied accesses; `None` if no access was denied, as in most calls.
    denials: Mutex<Option<Box<DenialLog>>>,
    /// The allowed accesses, as text for the trace.
    allowed_accesses: Mutex<BTreeSet<String>>,
    /// See [`Self::may_have_changed_something`].
    may_have_changed: AtomicBool,
    /// Whether another plugin makes the call and lacks some of this plugin's rights. `rights` then omits those rights.
    is_narrowed: bool,
    /// See [`Self::has_limited_grants`].
    has_limited_grants: bool,
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
            denials: Mutex::default(),
            allowed_accesses: Mutex::default(),
            may_have_changed: AtomicBool::new(false),
            is_narrowed,
            has_limited_grants: false,
        }
    }

    /// Records the rules that the plugin lost because its component changed.
    pub(super) fn with_lost_rules(self, lost_rules: &[String]) -> Self {
        for rule in lost_rules {
            self.record(lost_grant(&self.plugin, rule), DenialNotice::Silent);
        }
        self
    }

    /// Refuses a call by another plugin that lacks some of this plugin's rights. Use this check before a call in a session
    /// instance, which has all rights of its plugin, and before other calls that must not run with fewer rights.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) fn require_full_rights(&self) -> Result<(), Error> {
        if !self.is_narrowed {
            return Ok(());
        }
        let message = format!(
            "`{}` has rights that the calling plugin does not have, and this call must not run without them",
            self.plugin
        );
        let denied = DeniedAccess {
            plugin: self.plugin.to_string(),
            access: "be called by a plugin with fewer rights".to_owned(),
            reason: message.clone(),
            suggestion: "grant the same to the calling plugin".to_owned(),
            missing_grant: None,
        };
        Err(Error::new(ErrorKind::Denied, Phase::Execute, message)
            .with_suggestion("let the model make the call")
            .with_denied(vec![denied]))
    }

    /// Decides on an access, and records it. Returns the number of the rule that allows the access, counted from 1, or
    /// `None` if the access needs no grant.
    ///
    /// # Errors
    /// The denial, which is recorded for the operator.
    pub(crate) fn require_access(&self, request: &AccessRequest<'_>) -> Result<Option<usize>, Denial> {
        let decision = self.rights.effective.require(request);
        match &decision {
            Ok(_) => self.record_access(request),
            Err(denial) => self.record_denial(request, denial),
        }
        decision
    }

    /// Records an allowed access for the trace.
    pub(crate) fn record_access(&self, request: &AccessRequest<'_>) {
        if request.may_change() {
            self.may_have_changed.store(true, Ordering::Relaxed);
        }
        let mut accesses = self.allowed_accesses.lock().unwrap_or_else(PoisonError::into_inner);
        if accesses.len() < ALLOWED_ACCESSES_MAX {
            accesses.insert(printable(&self.redactor.redact_text(&request.to_argument())).to_string());
        }
    }

    pub(super) fn with_limited_grants(mut self, has_limited_grants: bool) -> Self {
        self.has_limited_grants = has_limited_grants;
        self
    }

    /// Returns whether the call may have used up a grant for one call or one conversation, so that a repetition would lack it.
    pub(crate) fn has_limited_grants(&self) -> bool {
        self.has_limited_grants
    }

    /// Returns whether one of the allowed accesses so far may have changed something outside the instance.
    pub(crate) fn may_have_changed_something(&self) -> bool {
        self.may_have_changed.load(Ordering::Relaxed)
    }

    /// Returns the value of a setting. Returns `None` and records a denied access if the plugin may not read it.
    pub(crate) fn setting(&self, key: &str) -> Option<String> {
        self.require_access(&AccessRequest::Setting(key)).ok()?;
        self.rights.effective.rules.config.get(key).cloned()
    }

    /// Returns the quota of the plugin's key–value store, in bytes. Returns `None` and records a denied access if the
    /// plugin may not use the store.
    pub(crate) fn key_value_bytes_max(&self) -> Option<u64> {
        self.require_access(&AccessRequest::KeyValue).ok()?;
        let rule = self.rights.effective.rules.keyvalue.as_ref()?;
        Some(rule.quota_bytes)
    }

    /// Records a denied access for the operator. A read of a random device is not recorded: no grant is missing,
    /// because C libraries try these devices first and then use the random numbers of WASI.
    pub(crate) fn record_denial(&self, request: &AccessRequest<'_>, denial: &Denial) {
        if let AccessRequest::File("/dev/urandom" | "/dev/random", AccessMode::Read) = request {
            return;
        }
        self.with_denials(|denials| denials.record_request(&self.plugin, request, denial, &self.redactor));
    }

    /// Records a denied access that no grant would allow, such as an access that exceeds a limit. The denial counts as
    /// reported to the guest, so it can become the error of a call that fails afterwards.
    pub(crate) fn record_refusal(&self, access: String, reason: String, suggestion: String) {
        let notice = DenialNotice::Reported {
            reason: reason.clone(),
            suggestion: Some(suggestion.clone()),
        };
        self.record(self.denied(access, reason, suggestion), notice);
    }

    /// Records a request that a rule allows, to a host with an address that no rule allows.
    #[cfg(feature = "network")]
    pub(crate) fn record_denied_address(&self, request: &AccessRequest<'_>, denial: &Denial, suggestion: String) {
        let notice = DenialNotice::denied(denial);
        self.record(self.denied(request.to_string(), denial.to_string(), suggestion), notice);
    }

    fn denied(&self, access: String, reason: String, suggestion: String) -> DeniedAccess {
        DeniedAccess {
            plugin: self.plugin.to_string(),
            access,
            reason,
            suggestion,
            missing_grant: None,
        }
    }

    /// Records a denied access if a guest reads its environment and has no variables. Does nothing if it has variables.
    pub(crate) fn record_environment_read(&self) {
        if !self.variables.is_empty() {
            return;
        }
        let effective = &self.rights.effective;
        for name in &effective.missing.variables {
            // Called only because it records the denial.
            let _ = self.require_access(&AccessRequest::Variable(name));
        }
        // An empty name matches no rule, so this request returns the denial of an unknown variable.
        if effective.missing.variables.is_empty()
            && let Err(denial) = effective.require(&AccessRequest::Variable(""))
        {
            self.record(denied_environment(&self.plugin, &denial), DenialNotice::Silent);
        }
    }

    /// Adds accesses that were denied to a nested call.
    pub(crate) fn record_nested(&self, denied: Vec<DeniedAccess>) {
        if !denied.is_empty() {
            self.with_denials(|denials| denials.extend(denied));
        }
    }

    fn record(&self, denied: DeniedAccess, notice: DenialNotice) {
        self.with_denials(|denials| denials.record(denied, notice, &self.redactor));
    }

    fn with_denials(&self, change: impl FnOnce(&mut DenialLog)) {
        change(self.lock_denials().get_or_insert_default());
    }

    fn lock_denials(&self) -> MutexGuard<'_, Option<Box<DenialLog>>> {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that every value that the plugin requires exists as a variable, a setting or a secret. An empty variable
    /// or setting does not count. A secret need not be exposed to the guest.
    ///
    /// # Errors
    /// [`ErrorKind::MissingKey`].
    pub(crate) fn require_values(&self, requirements: &[Requirement]) -> Result<(), Error> {
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
            .with_source(missing_grant(
                &self.plugin,
                self.rights.effective.declared.value_grant_key(),
                name,
            ))
    }

    /// Redacts the secrets in the outcome of a call, and adds the denied accesses. Also adds the allowed accesses if the
    /// outcome is a result. Call this method once, because it removes the recorded accesses.
    pub(crate) fn redact_and_report(&self, outcome: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        let redacted = self.redact(outcome);
        let denials = self.lock_denials().take();
        let mut outcome = match denials {
            Some(denials) => denials.conclude(redacted),
            None => redacted,
        };
        if let Ok(result) = &mut outcome {
            let mut accesses = self.allowed_accesses.lock().unwrap_or_else(PoisonError::into_inner);
            result.accesses.extend(std::mem::take(&mut *accesses));
        }
        outcome
    }

    fn redact(&self, outcome: Result<ToolResult, Error>) -> Result<ToolResult, Error> {
        if self.redactor.is_empty() {
            return outcome;
        }
        match outcome {
            Ok(result) => Ok(self.redact_result(result)),
            Err(error) => Err(
                error.redacted(&|text| self.redactor.redact_text(text).into_owned(), &|value| {
                    self.redactor.redact_value(value);
                }),
            ),
        }
    }

    fn redact_result(&self, mut result: ToolResult) -> ToolResult {
        let redact = |text: &str| self.redactor.redact_text(text).into_owned();
        result.for_llm = redact(&result.for_llm);
        result.for_user = result.for_user.as_deref().map(redact);
        result.log = result.log.as_deref().map(|log| redact(log).into());
        if let Some(value) = &mut result.value {
            self.redactor.redact_value(value);
        }
        for artifact in &mut result.artifacts {
            artifact.kind = redact(&artifact.kind);
            self.redactor.redact_value(&mut artifact.value);
        }
        if let Some(follow_up) = &mut result.follow_up {
            follow_up.tool = redact(&follow_up.tool);
            follow_up.arguments = redact(&follow_up.arguments);
        }
        result
    }
}
