//! DeclaredCapabilities ∩ granted: what a plugin may do.

use std::collections::BTreeMap;

use super::directory_rule::{AccessMode, DirectoryRule};
use super::grant::{ClockRule, EnvRule, Grant, GrantRules, GrantedVersion, Grants, KeyValueRule, RandomRule};
use super::http_rule::HttpRule;
use super::secret_rule::SecretRule;
use crate::inspect::declared::{Capability, DeclaredCapabilities};

/// What a plugin may do. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EffectiveRights {
    /// What it asked for.
    pub declared: DeclaredCapabilities,
    /// Requests.
    pub http: Vec<HttpRule>,
    /// Directories.
    pub files: Vec<DirectoryRule>,
    /// Environment variables.
    pub env: Vec<EnvRule>,
    /// Secrets.
    pub secrets: Vec<SecretRule>,
    /// Settings.
    pub config: BTreeMap<String, String>,
    /// Its key–value store.
    pub keyvalue: Option<KeyValueRule>,
    /// Tools that it may call.
    pub tools: Vec<String>,
    /// Keys of a call's context that it may read.
    pub context: Vec<String>,
    /// What it may do with the objects that the tools of a conversation share.
    pub blackboard: Option<AccessMode>,
    /// What its clocks show.
    pub clock: Option<ClockRule>,
    /// What its random bytes are.
    pub random: Option<RandomRule>,
    /// Why nothing is granted, where that is so.
    pub no_grant: Option<NoGrantReason>,
}

/// Why nothing is granted to a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoGrantReason {
    /// No grant names it.
    NoGrant,
    /// A grant names it, for another content.
    OtherDigest,
    /// A grant that was for one call or one conversation was used already.
    UsedUp,
    /// The file of grants cannot be read, so that nothing in it holds.
    Unreadable,
}

impl EffectiveRights {
    /// Intersects what a plugin asks for with what is granted to it.
    #[must_use]
    pub fn new(declared: &DeclaredCapabilities, grants: &Grants, plugin: &str, digest: &str) -> Self {
        let named: Vec<_> = grants.grants.iter().filter(|grant| grant.plugin == plugin).collect();
        let mut fitting = named
            .iter()
            .copied()
            .filter(|grant| grant.is_for(plugin, digest))
            .peekable();
        if fitting.peek().is_none() {
            let why = if named.is_empty() {
                NoGrantReason::NoGrant
            } else {
                NoGrantReason::OtherDigest
            };
            return Self::nothing(declared, why);
        }
        Self::of_grants(declared, fitting)
    }

    /// Intersects what a plugin asks for with the sum of some grants of it.
    #[must_use]
    pub fn of_grants<'a>(declared: &DeclaredCapabilities, grants: impl IntoIterator<Item = &'a Grant>) -> Self {
        let mut effective = Self {
            declared: declared.clone(),
            ..Self::default()
        };
        for grant in grants {
            effective.add(&grant.rules);
        }
        effective
    }

    /// Makes what a plugin may do to which nothing is granted.
    #[must_use]
    pub fn nothing(declared: &DeclaredCapabilities, why: NoGrantReason) -> Self {
        Self {
            declared: declared.clone(),
            no_grant: Some(why),
            ..Self::default()
        }
    }

    fn add(&mut self, granted: &GrantRules) {
        let declared = self.declared.clone();
        if declared.has(Capability::Http) {
            self.http.extend_from_slice(&granted.http);
        }
        if declared.has(Capability::Files) {
            let is_new = |rule: &&DirectoryRule| !self.files.iter().any(|known| known.guest == rule.guest);
            let new: Vec<_> = granted.files.iter().filter(is_new).cloned().collect();
            self.files.extend(new);
        }
        if declared.has(Capability::Env) {
            self.env.extend_from_slice(&granted.env);
        }
        for rule in &granted.secrets {
            let mut rule = rule.clone();
            rule.target = rule.target.filter(|_| declared.has(Capability::Http));
            rule.exposed_as = rule.exposed_as.filter(|_| declared.has(Capability::Env));
            if rule.target.is_some() || rule.exposed_as.is_some() {
                self.secrets.push(rule);
            }
        }
        if declared.has(Capability::Config) {
            self.config.extend(granted.config.clone());
        }
        if declared.has(Capability::Keyvalue) {
            self.keyvalue = self.keyvalue.take().or_else(|| granted.keyvalue.clone());
        }
        if declared.has(Capability::Tools) {
            self.tools.extend_from_slice(&granted.tools);
        }
        if declared.has(Capability::Context) {
            self.context.extend_from_slice(&granted.context);
        }
        if declared.has(Capability::Blackboard) {
            self.blackboard = self.blackboard.or(granted.blackboard);
        }
        // These take away rather than give, so that they hold whatever is declared: the first word counts.
        self.clock = self.clock.or(granted.clock);
        self.random = self.random.or(granted.random);
    }

    /// Tells whether an instance that was made under `earlier` may go on: nothing that it could do is missing, and what was
    /// built into it is the same. Requests and secrets are looked at anew at each call.
    #[must_use]
    pub fn continues(&self, earlier: &Self) -> bool {
        let built_in_is_same = self.files == earlier.files
            && self.env == earlier.env
            && self.config == earlier.config
            && self.keyvalue == earlier.keyvalue
            && self.clock == earlier.clock
            && self.random == earlier.random;
        built_in_is_same
            && earlier.http.iter().all(|rule| self.http.contains(rule))
            && earlier.secrets.iter().all(|rule| self.secrets.contains(rule))
            && earlier.tools.iter().all(|id| self.tools.contains(id))
            && earlier.context.iter().all(|key| self.context.contains(key))
            && (earlier.blackboard.is_none() || earlier.blackboard == self.blackboard)
    }

    /// Narrows what a plugin may do to what another, which calls it, may do too: of what leads out of the plugin, only what
    /// both were granted in the same words remains. Its own settings and its own store stay.
    #[must_use]
    pub fn within(&self, caller: &Self) -> Self {
        fn both<T: PartialEq + Clone>(own: &[T], callers: &[T]) -> Vec<T> {
            own.iter().filter(|rule| callers.contains(rule)).cloned().collect()
        }
        Self {
            http: both(&self.http, &caller.http),
            files: both(&self.files, &caller.files),
            env: both(&self.env, &caller.env),
            secrets: both(&self.secrets, &caller.secrets),
            tools: both(&self.tools, &caller.tools),
            context: both(&self.context, &caller.context),
            blackboard: self.blackboard.filter(|_| self.blackboard == caller.blackboard),
            // These take away: what is frozen for one of the two is frozen.
            clock: match (self.clock, caller.clock) {
                (Some(ClockRule::Frozen(_)), _) | (_, None) => self.clock,
                (_, callers) => callers,
            },
            random: match (self.random, caller.random) {
                (Some(RandomRule::Frozen(_)), _) | (_, None) => self.random,
                (_, callers) => callers,
            },
            ..self.clone()
        }
    }
}

/// What a new content of a plugin would get from grants for its other contents, if an operator renewed them.
#[must_use]
pub fn stale_grants<'a>(grants: &'a Grants, plugin: &str, digest: &str) -> Vec<&'a Grant> {
    let is_stale = |grant: &&Grant| {
        grant.plugin == plugin && matches!(&grant.version, GrantedVersion::Digest(granted) if granted != digest)
    };
    grants.grants.iter().filter(is_stale).collect()
}
