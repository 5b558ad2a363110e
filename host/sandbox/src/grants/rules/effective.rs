//! The effective rights of a plugin: the granted rules of the capabilities that its component declares.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::access::{AccessRequest, Decision, Denial};
use super::decide::decide;
use super::directory_rule::{AccessMode, DirectoryRule};
use super::error::FilePosition;
use super::grant::{Grant, GrantRules, Grants};
use super::http_rule::HttpRule;
use super::request_target::RequestTarget;
use super::secret_rule::SecretRule;
use super::value_rules::{ClockRule, RandomRule};
use crate::inspect::declared_capabilities::{Capability, DeclaredCapabilities};

/// The effective rights of a plugin: declared ∩ granted. The default has no rights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectiveRights {
    /// The capabilities that the component of the plugin declares by its imports.
    pub declared: DeclaredCapabilities,
    /// The granted rules of declared capabilities, and all clock and random rules, because these only restrict.
    pub rules: GrantRules,
    /// The reason why no grant applies; `None` if a grant applies.
    pub no_grant: Option<NoGrantReason>,
    /// The granted directories that the host cannot open, by their guest paths. Their rules allow nothing.
    pub unenforceable_directories: BTreeMap<String, UnenforceableRule>,
    /// The granted variables and secrets that have no value at the time of the call.
    pub missing: MissingValues,
    /// The real path of each granted directory that has been opened, by its guest path.
    pub real_paths: BTreeMap<String, PathBuf>,
}

/// The granted variables and secrets that have no value at the time of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MissingValues {
    /// Granted environment variables that are not set in the host process, or are not valid Unicode.
    pub variables: Vec<String>,
    /// Granted secrets without a value.
    pub secrets: Vec<SecretRule>,
}

/// A granted rule that the host cannot enforce, such as a rule for a directory that does not exist. The rule allows nothing. The
/// other rules of its plugin apply, and other plugins are not affected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnenforceableRule {
    /// The position of the grant in its file; `None` for a grant of the application.
    pub position: Option<FilePosition>,
    /// The reason. It can contain paths of the host.
    pub reason: String,
}

impl fmt::Display for UnenforceableRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "the grant at {position} cannot be enforced: {}", self.reason),
            None => write!(f, "a grant of the application cannot be enforced: {}", self.reason),
        }
    }
}

/// The reason why no grant applies to a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoGrantReason {
    /// Neither the grants file nor the application has a grant for the plugin.
    NotNamed,
    /// All grants for the plugin are for components with other digests.
    OtherDigest,
    /// The grant was for one call or one conversation and is used up.
    UsedUp,
    /// The grant is for one call or one conversation, and its use could not be recorded. For example, the record of used grants
    /// cannot be read or written, or the grant was added while the uses of other grants were recorded.
    UseNotRecorded,
    /// The grants file cannot be read or is invalid, so that no grant applies, not even one of the application.
    Unreadable,
}

impl fmt::Display for NoGrantReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotNamed => "no grant names the plugin",
            Self::OtherDigest => "the grant is for another version of the plugin",
            Self::UsedUp => "the grant is used up",
            Self::UseNotRecorded => {
                "the use of the grant could not be recorded; the log of the host may have the reason"
            }
            Self::Unreadable => "the grants file cannot be used, so that nothing is granted",
        })
    }
}

impl EffectiveRights {
    /// Computes the rights of a plugin from grants, as if none of them were used up. Directories are not opened, and the values
    /// of variables and secrets are not looked up.
    #[must_use]
    pub fn new(declared: &DeclaredCapabilities, grants: &Grants, plugin: &str, digest: &str) -> Self {
        let plugin_grants: Vec<_> = grants.grants.iter().filter(|grant| grant.plugin == plugin).collect();
        let mut applicable = plugin_grants
            .iter()
            .copied()
            .filter(|grant| grant.is_for(plugin, digest))
            .peekable();
        if applicable.peek().is_none() {
            let reason = if plugin_grants.is_empty() {
                NoGrantReason::NotNamed
            } else {
                NoGrantReason::OtherDigest
            };
            return Self::none(declared, reason);
        }
        Self::of_grants(declared, applicable)
    }

    /// Intersects the declared capabilities with the union of some grants, which must all apply to the plugin.
    ///
    /// Of two rules for the same guest path, environment variable or setting, the first one applies. Only the first key–value,
    /// blackboard, clock and random rule apply. Grants for one call or one conversation come before permanent grants; otherwise,
    /// the grants keep their order.
    #[must_use]
    pub fn of_grants<'a>(declared: &DeclaredCapabilities, grants: impl IntoIterator<Item = &'a Grant>) -> Self {
        let mut rights = Self {
            declared: declared.clone(),
            ..Self::default()
        };
        let mut grants: Vec<&Grant> = grants.into_iter().collect();
        grants.sort_by_key(|grant| grant.is_permanent());
        for grant in grants {
            rights.add(&grant.rules);
        }
        rights
    }

    /// Returns the rights of a plugin to which no grant applies.
    #[must_use]
    pub fn none(declared: &DeclaredCapabilities, reason: NoGrantReason) -> Self {
        Self {
            declared: declared.clone(),
            no_grant: Some(reason),
            ..Self::default()
        }
    }

    /// Adds the rules of a grant whose capabilities the component declares. Omits a rule for the same guest path, environment
    /// variable or setting as an earlier rule, and a second key–value, blackboard, clock or random rule.
    fn add(&mut self, granted: &GrantRules) {
        let Self { declared, rules, .. } = self;
        if declared.has(Capability::Http) {
            rules.http.extend_from_slice(&granted.http);
        }
        if declared.has(Capability::Files) {
            for rule in &granted.files {
                if !rules.files.iter().any(|earlier| earlier.guest == rule.guest) {
                    rules.files.push(rule.clone());
                }
            }
        }
        if declared.has(Capability::Env) {
            for rule in &granted.env {
                if !rules.env.iter().any(|earlier| earlier.name == rule.name) {
                    rules.env.push(rule.clone());
                }
            }
        }
        for rule in &granted.secrets {
            let mut rule = rule.clone();
            rule.target = rule.target.filter(|_| declared.has(Capability::Http));
            rule.exposed_as = rule.exposed_as.filter(|_| declared.has(Capability::Env));
            if rule.target.is_some() || rule.exposed_as.is_some() {
                rules.secrets.push(rule);
            }
        }
        if declared.has(Capability::Config) {
            for (key, value) in &granted.config {
                rules.config.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        if declared.has(Capability::Keyvalue) {
            rules.keyvalue = rules.keyvalue.take().or_else(|| granted.keyvalue.clone());
        }
        if declared.has(Capability::Tools) {
            rules.tools.extend_from_slice(&granted.tools);
        }
        if declared.has(Capability::Context) {
            rules.context.extend_from_slice(&granted.context);
        }
        if declared.has(Capability::Blackboard) {
            rules.blackboard = rules.blackboard.or(granted.blackboard);
        }
        rules.ask |= granted.ask && declared.has(Capability::Ask);
        // The clock and random rules only restrict, so they apply even if the component does not declare these capabilities.
        rules.clock = rules.clock.or(granted.clock);
        rules.random = rules.random.or(granted.random);
    }

    /// Finds the rule that allows a request.
    ///
    /// # Errors
    /// The denial, if no rule allows the request.
    pub fn http_rule(&self, target: &RequestTarget) -> Result<&HttpRule, Denial> {
        let rule = self.require(&AccessRequest::Http(target))?;
        let rule = rule.and_then(|rule| self.rules.http.get(rule - 1));
        rule.ok_or(Denial::NoRule(Capability::Http))
    }

    /// Returns the number of the rule that allows an access, as [`decide`] does, or `None` if the access needs no grant.
    ///
    /// # Errors
    /// The denial, if the access is denied.
    pub fn require(&self, request: &AccessRequest<'_>) -> Result<Option<usize>, Denial> {
        match decide(self, request) {
            Decision::Allowed { rule } => Ok(rule),
            Decision::Denied(denial) => Err(denial),
        }
    }

    fn allows(&self, request: &AccessRequest<'_>) -> bool {
        decide(self, request).is_allowed()
    }

    /// Describes the first rule with which the plugin itself can change something outside its own instance: a rule for HTTP
    /// requests other than `GET` and `HEAD`, for a writable directory, for the key–value store, or for writing to the
    /// blackboard. Returns `None` without such a rule.
    ///
    /// A rule that cannot be enforced now also counts, because it may be enforceable at the next call. Rules for calls of other
    /// tools do not count.
    #[must_use]
    pub fn describe_writing_rule(&self) -> Option<String> {
        let rules = &self.rules;
        let http = rules.http.iter().find(|rule| !rule.only_reads());
        let http = http.map(|rule| format!("http {rule}"));
        let is_writable = |rule: &&DirectoryRule| rule.access == AccessMode::ReadWrite;
        let files = || rules.files.iter().find(is_writable).map(|rule| format!("files {rule}"));
        let keyvalue = || rules.keyvalue.as_ref().map(|_| "keyvalue".to_owned());
        let blackboard = || {
            let mode = rules.blackboard.filter(|mode| *mode == AccessMode::ReadWrite)?;
            Some(format!("blackboard {mode}"))
        };
        http.or_else(files).or_else(keyvalue).or_else(blackboard)
    }

    /// Returns the value of a setting, or `None` if it is not set or the plugin may not read it.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&str> {
        let value = self.rules.config.get(key)?;
        self.allows(&AccessRequest::Setting(key)).then_some(value)
    }

    /// Returns all settings that the plugin may read.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let keys = self.rules.config.keys();
        keys.filter_map(|key| Some((key.as_str(), self.setting(key)?)))
    }

    /// Returns the mode in which the directory at a guest path is opened for the plugin.
    ///
    /// Returns `None` if no rule has this guest path, or if the directory cannot be opened. Also returns `None` if the guest
    /// reaches the files through an outer directory, and if no access is allowed at all because a secret is missing.
    #[must_use]
    pub fn directory_mode(&self, guest: &str) -> Option<AccessMode> {
        let number = self.rules.files.iter().position(|rule| rule.guest == guest)? + 1;
        let is_allowed_by_rule = |mode| self.require(&AccessRequest::File(guest, mode)) == Ok(Some(number));
        [AccessMode::ReadWrite, AccessMode::Read]
            .into_iter()
            .find(|mode| is_allowed_by_rule(*mode))
    }

    /// Returns the reason why the directory of a rule cannot be opened, by the rule's index in `files`. Returns `None` if the
    /// directory is open, or has not been opened yet.
    pub(super) fn unenforceable_directory(&self, index: usize) -> Option<&UnenforceableRule> {
        self.unenforceable_directories.get(&self.rules.files.get(index)?.guest)
    }

    /// Returns whether the plugin may read an environment variable.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.allows(&AccessRequest::Variable(name))
    }

    /// Returns whether the plugin may use a secret.
    #[must_use]
    pub fn has_secret(&self, name: &str) -> bool {
        self.allows(&AccessRequest::Secret(name))
    }

    /// Returns the time that the plugin's clocks show; `None` if it may not read a clock.
    #[must_use]
    pub fn clock(&self) -> Option<ClockRule> {
        let rule = self.require(&AccessRequest::Clock).ok()?;
        Some(rule.and(self.rules.clock).unwrap_or(ClockRule::Real))
    }

    /// Returns the source of the plugin's random bytes; `None` if it may not read any.
    #[must_use]
    pub fn random(&self) -> Option<RandomRule> {
        let rule = self.require(&AccessRequest::Random).ok()?;
        Some(rule.and(self.rules.random).unwrap_or(RandomRule::Real))
    }

    /// Returns the host directory of a rule, by the rule's index in `files`: its real path if it is open, otherwise the path in
    /// the rule.
    pub(super) fn host_directory(&self, index: usize) -> Option<&Path> {
        let DirectoryRule { host, guest, .. } = self.rules.files.get(index)?;
        Some(self.real_paths.get(guest).unwrap_or(host))
    }

    /// Returns whether an instance that was created with the rights `earlier` can be reused: no earlier right was revoked, and
    /// the rights that are fixed at instantiation are unchanged. Other rules may have been added, because the host checks each
    /// access. A changed blackboard rule counts as revoked.
    #[must_use]
    pub fn can_keep_instance_of(&self, earlier: &Self) -> bool {
        fn exposed_variables(rules: &GrantRules) -> impl Iterator<Item = &String> {
            rules.secrets.iter().filter_map(|rule| rule.exposed_as.as_ref())
        }
        let (now, before) = (&self.rules, &earlier.rules);
        let has_equal_fixed_rights = now.files == before.files
            && self.real_paths == earlier.real_paths
            && now.env == before.env
            && exposed_variables(now).eq(exposed_variables(before))
            && now.config == before.config
            && now.keyvalue == before.keyvalue
            && now.clock == before.clock
            && now.random == before.random;
        has_equal_fixed_rights
            && before.http.iter().all(|rule| now.http.contains(rule))
            && before.secrets.iter().all(|rule| now.secrets.contains(rule))
            && before.tools.iter().all(|id| now.tools.contains(id))
            && before.context.iter().all(|key| now.context.contains(key))
            && (before.blackboard.is_none() || before.blackboard == now.blackboard)
            && (!before.ask || now.ask)
    }

    /// Narrows the rights to those that a calling plugin has as well. A rule for something outside the plugin remains only if
    /// the caller has an equal rule. The plugin keeps its own settings and its own key–value store.
    #[must_use]
    pub fn narrowed_to(&self, caller: &Self) -> Self {
        fn common<T: PartialEq + Clone>(rules: &[T], caller_rules: &[T]) -> Vec<T> {
            rules
                .iter()
                .filter(|rule| caller_rules.contains(rule))
                .cloned()
                .collect()
        }
        let (own_rules, caller_rules) = (&self.rules, &caller.rules);
        let rules = GrantRules {
            http: common(&own_rules.http, &caller_rules.http),
            files: common(&own_rules.files, &caller_rules.files),
            env: common(&own_rules.env, &caller_rules.env),
            secrets: common(&own_rules.secrets, &caller_rules.secrets),
            tools: common(&own_rules.tools, &caller_rules.tools),
            context: common(&own_rules.context, &caller_rules.context),
            blackboard: own_rules
                .blackboard
                .filter(|_| own_rules.blackboard == caller_rules.blackboard),
            ask: own_rules.ask && caller_rules.ask,
            // The clock and random rules restrict: a source that is frozen for one of the two plugins is frozen.
            clock: match (own_rules.clock, caller_rules.clock) {
                (Some(ClockRule::Frozen(_)), _) | (_, None) => own_rules.clock,
                (_, caller_rule) => caller_rule,
            },
            random: match (own_rules.random, caller_rules.random) {
                (Some(RandomRule::Frozen(_)), _) | (_, None) => own_rules.random,
                (_, caller_rule) => caller_rule,
            },
            ..own_rules.clone()
        };
        Self { rules, ..self.clone() }
    }

    /// Describes the rule that allows an access. `number` is the number of the rule that [`decide`] returned for this access in
    /// [`Decision::Allowed`]; for another number, the description can be wrong.
    #[must_use]
    pub fn describe_rule(&self, request: &AccessRequest<'_>, number: usize) -> Option<String> {
        let rules = &self.rules;
        let index = number.checked_sub(1)?;
        match request {
            AccessRequest::Http(_) => rules.http.get(index).map(ToString::to_string),
            AccessRequest::File(..) => rules.files.get(index).map(ToString::to_string),
            AccessRequest::Secret(name) => {
                let rule = rules.secrets.get(index).filter(|rule| rule.name == *name);
                rule.map(ToString::to_string)
            }
            AccessRequest::Variable(name) | AccessRequest::Setting(name) | AccessRequest::ContextKey(name) => {
                Some((*name).to_owned())
            }
            AccessRequest::Tool(id) => Some((*id).to_owned()),
            AccessRequest::KeyValue => Some("a key–value store".to_owned()),
            AccessRequest::Clock => rules.clock.map(|rule| rule.to_string()),
            AccessRequest::Random => rules.random.map(|rule| rule.to_string()),
            AccessRequest::Blackboard(_) => rules.blackboard.map(|mode| format!("the blackboard, {mode}")),
            AccessRequest::Ask => rules.ask.then(|| "questions to the user".to_owned()),
        }
    }
}
