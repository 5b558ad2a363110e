//! The provider of authority: it combines the current grants, the secrets and the key–value store of a host.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::call_authority::{Authority, CallAuthority};
use super::current_grants::{CallRights, CurrentGrants};
use super::directory_opener::HostPaths;
use super::key_value_store::{KeyValueStore, MemoryKeyValueStore};
use super::ledger::GrantUse;
use super::rights::{AuthorityRequest, OpenedRights};
use super::secret::{LookedUpSecrets, Secret, SecretError, SecretLookup, SecretStore, SecretValues, host_variable};
use crate::grants::file::{NewGrant, WritableRecord};
use crate::grants::redact::Redactor;
use crate::grants::{ClockRule, EffectiveRights, GrantRules, RandomRule};
use toolwit_core::{Error, ErrorKind, Phase, ToolContext};

/// Provides the authority of each call.
pub(crate) struct AuthorityProvider {
    grants: CurrentGrants,
    secrets: SecretLookup,
    keyvalue: Arc<dyn KeyValueStore>,
    /// The real paths of the directories with plugins.
    plugin_directories: Vec<PathBuf>,
    /// See [`AuthoritySources::frozen_at`].
    frozen_at: Option<u64>,
}

/// The sources from which a provider creates the authority of calls.
#[derive(Default)]
pub(crate) struct AuthoritySources {
    /// The operator's grants file.
    pub(crate) grants_file: Option<PathBuf>,
    /// The grants of the application.
    pub(crate) application_grants: Vec<NewGrant>,
    /// The operator's secret store.
    pub(crate) secrets_file: Option<PathBuf>,
    /// The secrets of the application.
    pub(crate) secret_values: SecretValues,
    /// The key–value store of the plugins; `None` for a store in memory.
    pub(crate) keyvalue: Option<Arc<dyn KeyValueStore>>,
    /// The time at which the clocks of all plugins stand still, in seconds since 1970. It is also the seed of their
    /// random bytes. `None` to leave both to the grants.
    pub(crate) frozen_at: Option<u64>,
    /// The host's own files and directories, in addition to the grants file and the secret store.
    pub(crate) host_paths: HostPaths,
    /// The record of writable directories; `None` for a record next to the grants file.
    pub(crate) writable_record: Option<WritableRecord>,
}

impl AuthorityProvider {
    /// Creates a provider and reads the grants.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a grants file that cannot be read or is invalid, and for invalid grants and
    /// secrets of the application.
    pub(crate) fn new(sources: AuthoritySources) -> Result<Self, Error> {
        let mut host_paths = sources.host_paths;
        host_paths.protected.extend(sources.secrets_file.iter().cloned());
        let plugin_directories = host_paths.plugins.iter().filter_map(|path| plugin_directory(path));
        let plugin_directories = plugin_directories.collect();
        let grants: Result<Vec<_>, _> = sources
            .application_grants
            .into_iter()
            .map(NewGrant::into_grant)
            .collect();
        let application_grants = grants.map_err(|error| {
            let message = format!("a grant of the application is invalid: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        })?;
        sources.secret_values.check()?;
        Ok(Self {
            grants: CurrentGrants::open(
                sources.grants_file,
                application_grants,
                host_paths,
                sources.writable_record,
            )?,
            secrets: SecretLookup {
                values: sources.secret_values,
                store: sources.secrets_file.map(SecretStore::new),
            },
            frozen_at: sources.frozen_at,
            plugin_directories,
            keyvalue: sources.keyvalue.unwrap_or_else(|| Arc::new(MemoryKeyValueStore::new())),
        })
    }

    /// Checks that the host can enforce rules: their directories can be granted, and their secrets exist. Does not check
    /// secrets that a conversation provides.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a directory that cannot be granted, a secret that cannot be used and a secret
    /// store that cannot be read, and [`ErrorKind::MissingKey`] for a secret that does not exist.
    pub(crate) async fn check(self: &Arc<Self>, rules: GrantRules) -> Result<(), Error> {
        let provider = self.clone();
        let task = tokio::task::spawn_blocking(move || {
            provider.grants.check(&rules)?;
            provider.secrets.look_up(&rules.secrets, None)?.require_all()?;
            Ok(())
        });
        task.await.map_err(task_error)?
    }

    /// Logs a warning for each grant whose plugin is not in `plugins`, because a grant with a mistyped name has no effect.
    /// Grants that were made for other plugin directories are left out.
    pub(crate) fn warn_about_unknown_plugins<'a>(&self, plugins: impl Iterator<Item = &'a str>) {
        let plugins: HashSet<&str> = plugins.collect();
        let granted_plugins = self.grants.granted_plugins(&self.plugin_directories);
        for plugin in granted_plugins
            .iter()
            .filter(|plugin| !plugins.contains(plugin.as_str()))
        {
            tracing::warn!(plugin, "a grant names a plugin that does not exist");
        }
    }

    /// Computes the authority of a call, and records the use of the grants that are not permanent.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the plugin had a grant and the grants file cannot be used now,
    /// [`ErrorKind::MissingKey`] if a granted secret does not exist, and [`ErrorKind::Configuration`] if the secrets
    /// cannot be read or used.
    pub(crate) async fn authorize(
        self: &Arc<Self>,
        request: AuthorityRequest<'_>,
        context: &ToolContext,
    ) -> Result<Authority, Error> {
        self.reread_if_stale().await?;
        let CallRights {
            rights: plugin_rights,
            lost_rules,
            has_limited_grants,
        } = self.grants.rights(request, GrantUse::Call).await?;
        let mut rights = match request.caller {
            Some(caller) => plugin_rights.narrowed_to(caller),
            None => plugin_rights.clone(),
        };
        let is_narrowed = !Arc::ptr_eq(&rights, &plugin_rights) && rights.effective != plugin_rights.effective;
        let looked_up = self.look_up_secrets(&rights, Some(context)).await?;
        if !looked_up.missing.is_empty() {
            let mut effective = rights.effective.clone();
            effective.missing.secrets = looked_up.missing;
            rights = rights.with_effective(effective);
            require_secrets(&rights.effective)?;
        }
        let secrets = looked_up.secrets;
        let (variables, missing_variables) = environment_variables(&rights.effective, &secrets);
        if !missing_variables.is_empty() {
            let mut effective = rights.effective.clone();
            effective.missing.variables = missing_variables;
            rights = rights.with_effective(effective);
        }
        if self.frozen_at.is_some() {
            let mut effective = rights.effective.clone();
            self.freeze(&mut effective);
            rights = rights.with_effective(effective);
        }
        let keyvalue = self.keyvalue.clone();
        let authority = CallAuthority::new(
            request.plugin.clone(),
            rights,
            secrets,
            variables,
            keyvalue,
            is_narrowed,
        );
        let authority = authority.with_limited_grants(has_limited_grants);
        Ok(Authority::new(authority.with_lost_rules(&lost_rules)))
    }

    /// Refuses a call if a grant that gives its authority was removed or changed since [`AuthorityProvider::authorize`].
    /// A grant that was added meanwhile does not apply to the call. A grant that the call itself used up still applies.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`].
    pub(crate) async fn require_current(self: &Arc<Self>, authority: &Authority) -> Result<(), Error> {
        self.reread_if_stale().await?;
        if self.grants.still_contain_grants_of(&authority.rights) {
            return Ok(());
        }
        let message = "a grant of the plugin was removed or changed while the call waited";
        Err(Error::new(ErrorKind::Denied, Phase::Execute, message).with_suggestion("repeat the call"))
    }

    /// Computes the rights that the next call in the conversation of the request would have. Ignores the calling plugin
    /// of the request, and does not look up secrets that the conversation provides. Does not use up grants.
    ///
    /// # Errors
    /// Those of [`AuthorityProvider::authorize`], except [`ErrorKind::MissingKey`]: the returned rights list missing secrets.
    pub(crate) async fn preview(self: &Arc<Self>, request: AuthorityRequest<'_>) -> Result<EffectiveRights, Error> {
        self.reread_if_stale().await?;
        let rights = self.grants.rights(request, GrantUse::Preview).await?.rights;
        let looked_up = self.look_up_secrets(&rights, None).await?;
        let mut effective = rights.effective.clone();
        (_, effective.missing.variables) = environment_variables(&effective, &looked_up.secrets);
        effective.missing.secrets = looked_up.missing;
        self.freeze(&mut effective);
        Ok(effective)
    }

    /// Replaces the clock and random rules if the host freezes the clocks of all plugins.
    fn freeze(&self, effective: &mut EffectiveRights) {
        if let Some(seconds) = self.frozen_at {
            effective.rules.clock = Some(ClockRule::Frozen(seconds));
            effective.rules.random = Some(RandomRule::Frozen(seconds));
        }
    }

    /// Computes the rights that the next call would have, without looking up secrets and variables. The clock and
    /// random rules are those of the grants, even if the host freezes the clocks of all plugins. Does not use up
    /// grants.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the plugin had a grant and the grants file cannot be used now.
    pub(crate) async fn current_rights(
        self: &Arc<Self>,
        request: AuthorityRequest<'_>,
    ) -> Result<EffectiveRights, Error> {
        self.reread_if_stale().await?;
        let rights = self.grants.rights(request, GrantUse::Preview).await?.rights;
        Ok(match request.caller {
            Some(caller) => rights.effective.narrowed_to(caller),
            None => rights.effective.clone(),
        })
    }

    /// Returns the redactor of the secrets that are granted to the plugin. Does not use up grants.
    ///
    /// # Errors
    /// Those of [`AuthorityProvider::current_rights`], and [`ErrorKind::Configuration`] if the secrets cannot be read
    /// or used.
    pub(crate) async fn redactor(
        self: &Arc<Self>,
        request: AuthorityRequest<'_>,
        context: &ToolContext,
    ) -> Result<Redactor, Error> {
        self.reread_if_stale().await?;
        let rights = self.grants.rights(request, GrantUse::Preview).await?.rights;
        let looked_up = self.look_up_secrets(&rights, Some(context)).await?;
        Ok(Redactor::new(
            looked_up.secrets.iter().map(|secret| secret.value.as_str()),
        ))
    }

    async fn reread_if_stale(self: &Arc<Self>) -> Result<(), Error> {
        if !self.grants.is_stale() {
            return Ok(());
        }
        let provider = self.clone();
        let task = tokio::task::spawn_blocking(move || provider.grants.reread());
        task.await.map_err(task_error)
    }

    /// Looks up the granted secrets that the plugin may use. Without a context, skips secrets that the conversation
    /// provides.
    async fn look_up_secrets(
        self: &Arc<Self>,
        rights: &OpenedRights,
        context: Option<&ToolContext>,
    ) -> Result<LookedUpSecrets, Error> {
        let effective = &rights.effective;
        let rules = effective.rules.secrets.iter();
        let usable_rules: Vec<_> = rules.filter(|rule| effective.has_secret(&rule.name)).cloned().collect();
        if usable_rules.is_empty() {
            return Ok(LookedUpSecrets::default());
        }
        let (provider, context) = (self.clone(), context.cloned());
        let task = tokio::task::spawn_blocking(move || provider.secrets.look_up(&usable_rules, context.as_ref()));
        Ok(task.await.map_err(task_error)??)
    }
}

/// Returns the real path of a directory with plugins, or of the directory with a component.
fn plugin_directory(path: &Path) -> Option<PathBuf> {
    let real = std::fs::canonicalize(path).ok()?;
    if real.is_dir() {
        Some(real)
    } else {
        real.parent().map(Path::to_owned)
    }
}

/// Returns the environment variables that the guest sees, and the names of the granted variables of the host that have
/// no value.
fn environment_variables(
    effective: &EffectiveRights,
    secrets: &[Secret],
) -> (Vec<(String, Zeroizing<String>)>, Vec<String>) {
    let rules = &effective.rules;
    let mut variables = Vec::new();
    for rule in rules.env.iter().filter(|rule| effective.has_variable(&rule.name)) {
        let value = rule.value.clone().or_else(|| host_variable(&rule.name));
        variables.extend(value.map(|value| (rule.name.clone(), Zeroizing::new(value))));
    }
    for secret in secrets {
        let exposed_as = secret.rule.exposed_as.as_ref();
        let variable = exposed_as.filter(|variable| effective.has_variable(variable));
        variables.extend(variable.map(|variable| (variable.clone(), secret.value.clone())));
    }
    let has_value = |name: &String| variables.iter().any(|(variable, _)| variable == name);
    let is_exposed = |name: &String| rules.secrets.iter().any(|rule| rule.exposed_as.as_ref() == Some(name));
    let granted_names = rules.env.iter().map(|rule| &rule.name);
    let missing = granted_names
        .filter(|name| !has_value(name) && !is_exposed(name))
        .cloned()
        .collect();
    (variables, missing)
}

/// Refuses a call of a plugin if a granted secret does not exist, because the call would run with fewer rights than
/// were granted.
fn require_secrets(effective: &EffectiveRights) -> Result<(), Error> {
    match effective.missing.secrets.first() {
        None => Ok(()),
        Some(rule) => {
            let (name, location) = (rule.name.clone(), rule.source);
            Err(SecretError::Missing { name, location }.into())
        }
    }
}

/// Creates the error for a thread that did not finish reading the grants or secrets, for example because of a panic.
fn task_error(error: tokio::task::JoinError) -> Error {
    Error::new(
        ErrorKind::Internal,
        Phase::Execute,
        "reading the grants or secrets failed unexpectedly",
    )
    .with_source(error)
}
