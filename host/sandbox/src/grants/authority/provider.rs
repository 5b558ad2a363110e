//! The source of authority: the current grants, the secret store and the key–value store of a host.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::call_authority::{Authority, CallAuthority};
use super::current_grants::CurrentGrants;
use super::key_value_store::{KeyValueStore, MemoryKeyValueStore};
use super::ledger::GrantUse;
use super::rights::{AuthorityRequest, OpenedRights};
use super::secret::{FoundSecrets, Secret, SecretStore, host_variable, look_up};
use crate::grants::EffectiveRights;
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};

/// Provides the authority of each call.
pub(crate) struct AuthorityProvider {
    grants: CurrentGrants,
    secrets: Option<SecretStore>,
    keyvalue: Arc<dyn KeyValueStore>,
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
            grants: CurrentGrants::open(grants, protected)?,
            secrets: secrets.map(SecretStore::new),
            keyvalue: keyvalue.unwrap_or_else(|| Arc::new(MemoryKeyValueStore::new())),
        })
    }

    /// Logs a warning for each grant whose plugin is not in `plugins`: a mistyped name grants nothing.
    pub(crate) fn warn_about_unknown_plugins<'a>(&self, plugins: impl Iterator<Item = &'a str>) {
        let plugins: HashSet<&str> = plugins.collect();
        let granted = self.grants.plugins();
        for plugin in granted.iter().filter(|plugin| !plugins.contains(plugin.as_str())) {
            tracing::warn!(plugin, "a grant names a plugin that does not exist");
        }
    }

    /// Computes the authority of a call, and uses up grants that are valid for one call.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the grants of the plugin cannot be read now; [`ErrorKind::MissingKey`] if a granted secret does
    /// not exist.
    pub(crate) async fn authorize(
        self: &Arc<Self>,
        request: AuthorityRequest<'_>,
        context: &ToolContext,
    ) -> Result<Authority, Error> {
        self.reread_if_stale().await?;
        let own = self.grants.rights(request, GrantUse::Call)?;
        let mut rights = match request.caller {
            Some(caller) => own.narrowed_to(caller),
            None => own.clone(),
        };
        let is_narrowed = !Arc::ptr_eq(&rights, &own) && rights.effective != own.effective;
        let secrets = self.look_up(&rights, Some(context)).await?.require_all()?;
        let (variables, missing) = variables(&rights.effective, &secrets);
        if !missing.is_empty() {
            let mut effective = rights.effective.clone();
            effective.missing.variables = missing;
            rights = rights.with_effective(effective);
        }
        Ok(Authority::new(CallAuthority::new(
            request.plugin.clone(),
            rights,
            secrets,
            variables,
            self.keyvalue.clone(),
            is_narrowed,
        )))
    }

    /// Computes the rights that the next call in a new conversation would have. Does not use up grants.
    ///
    /// # Errors
    /// Those of [`AuthorityProvider::authorize`], except for missing secrets, which the rights list instead.
    pub(crate) async fn preview(self: &Arc<Self>, request: AuthorityRequest<'_>) -> Result<EffectiveRights, Error> {
        self.reread_if_stale().await?;
        let rights = self.grants.rights(request, GrantUse::Preview)?;
        let found = self.look_up(&rights, None).await?;
        let mut effective = rights.effective.clone();
        (_, effective.missing.variables) = variables(&effective, &found.secrets);
        effective.missing.secrets = found.missing;
        Ok(effective)
    }

    async fn reread_if_stale(self: &Arc<Self>) -> Result<(), Error> {
        if !self.grants.is_stale() {
            return Ok(());
        }
        let own = self.clone();
        let reading = tokio::task::spawn_blocking(move || own.grants.reread());
        reading.await.map_err(unexpected)
    }

    async fn look_up(
        self: &Arc<Self>,
        rights: &OpenedRights,
        context: Option<&ToolContext>,
    ) -> Result<FoundSecrets, Error> {
        let rules = &rights.effective.rules.secrets;
        if rules.is_empty() {
            return Ok(FoundSecrets::default());
        }
        let (own, rules, context) = (self.clone(), rules.clone(), context.cloned());
        let looking = tokio::task::spawn_blocking(move || look_up(&rules, own.secrets.as_ref(), context.as_ref()));
        Ok(looking.await.map_err(unexpected)??)
    }
}

/// Returns the variables that the guest sees, and the names of granted variables that have no value.
fn variables(effective: &EffectiveRights, secrets: &[Secret]) -> (Vec<(String, Zeroizing<String>)>, Vec<String>) {
    let rules = &effective.rules;
    let mut variables = Vec::new();
    for rule in rules.env.iter().filter(|rule| effective.has_variable(&rule.name)) {
        let value = rule.value.clone().or_else(|| host_variable(&rule.name));
        variables.extend(value.map(|value| (rule.name.clone(), Zeroizing::new(value))));
    }
    for secret in secrets {
        let variable = secret.rule.exposed_as.as_ref();
        let variable = variable.filter(|variable| effective.has_variable(variable));
        variables.extend(variable.map(|variable| (variable.clone(), secret.value.clone())));
    }
    let has_value = |name: &String| variables.iter().any(|(variable, _)| variable == name);
    let is_exposed = |name: &String| rules.secrets.iter().any(|rule| rule.exposed_as.as_ref() == Some(name));
    let granted = rules.env.iter().map(|rule| &rule.name);
    let missing = granted
        .filter(|name| !has_value(name) && !is_exposed(name))
        .cloned()
        .collect();
    (variables, missing)
}

fn unexpected(error: tokio::task::JoinError) -> Error {
    Error::new(
        ErrorKind::Internal,
        Phase::Execute,
        "reading the grants or secrets failed unexpectedly",
    )
    .with_source(error)
}
