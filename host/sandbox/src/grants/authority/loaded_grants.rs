//! Valid grants, with their directories opened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::directory_opener::{DirectoryOpener, OpenedRule};
use super::ledger::Admissions;
use super::rights::{AuthorityRequest, OpenedRights};
use crate::grants::{EffectiveRights, Grant, GrantedVersion, Grants, NoGrantReason, stale_grants};

/// The rights of a plugin, or the grants about which the ledger must decide first.
pub(super) enum RightsDecision {
    Decided(Arc<OpenedRights>),
    /// The grants that are valid for one call or one conversation only.
    Undecided(Vec<Grant>),
}

/// Valid grants, with their directories opened.
pub(super) struct LoadedGrants {
    grants: Grants,
    /// The directories of each grant, in the order of its rules.
    opened: Vec<Vec<OpenedRule>>,
    /// The cached rights, by plugin name and digest. Rights are cached only if all grants that apply to the plugin are
    /// permanent, because other grants can be used up.
    cached_rights: HashMap<(String, String), Arc<OpenedRights>>,
}

impl LoadedGrants {
    pub(super) fn open(grants: Vec<Grant>, directory_opener: &mut DirectoryOpener) -> Self {
        Self {
            opened: directory_opener.open(&grants),
            grants: Grants { grants },
            cached_rights: HashMap::new(),
        }
    }

    pub(super) fn grants(&self) -> &[Grant] {
        &self.grants.grants
    }

    /// Returns whether a granted directory has been removed, or a missing one created, since the grants were loaded.
    pub(super) fn is_outdated(&self) -> bool {
        self.opened.iter().flatten().any(OpenedRule::is_outdated)
    }

    /// Computes the rights of a plugin. `admissions` has the decisions about grants that are not permanent. If it is
    /// `None`, returns such grants as undecided.
    pub(super) fn rights(&mut self, request: AuthorityRequest<'_>, admissions: Option<&Admissions>) -> RightsDecision {
        let key = (request.plugin.to_string(), request.digest.to_owned());
        if let Some(rights) = self.cached_rights.get(&key) {
            return RightsDecision::Decided(rights.clone());
        }
        let grants = &self.grants.grants;
        let is_applicable = |index: &usize| grants[*index].is_for(request.plugin, request.digest);
        let applicable: Vec<usize> = (0..grants.len()).filter(is_applicable).collect();
        let is_permanent = |index: &usize| grants[*index].is_permanent();
        let are_permanent = applicable.iter().all(is_permanent);
        if !are_permanent && admissions.is_none() {
            let undecided = applicable.iter().filter(|index| !is_permanent(index));
            return RightsDecision::Undecided(undecided.map(|index| grants[*index].clone()).collect());
        }
        let mut admitted = Vec::with_capacity(applicable.len());
        let mut refusal_reason = NoGrantReason::UsedUp;
        for index in &applicable {
            let decision = match admissions {
                Some(admissions) if !is_permanent(index) => admissions.of(&grants[*index]),
                _ => Ok(()),
            };
            match decision {
                Ok(()) => admitted.push(*index),
                Err(reason) => refusal_reason = reason,
            }
        }
        // Grants that are not permanent come first. Rights and directories must have the same order, because the first
        // rule of a path applies.
        admitted.sort_by_key(is_permanent);
        let rights = if applicable.is_empty() {
            // No grant applies. `EffectiveRights` finds the reason: only grants for other digests, or no grant at all.
            let effective = EffectiveRights::new(request.declared, &self.grants, request.plugin, request.digest);
            OpenedRights::new(effective, std::iter::empty(), Vec::new())
        } else if admitted.is_empty() {
            OpenedRights::none(request.declared, refusal_reason)
        } else {
            let effective = EffectiveRights::of_grants(request.declared, admitted.iter().map(|index| &grants[*index]));
            let grant_identities = admitted.iter().map(|index| grants[*index].identity()).collect();
            OpenedRights::new(
                effective,
                admitted.iter().flat_map(|index| &self.opened[*index]),
                grant_identities,
            )
        };
        if are_permanent {
            self.cached_rights.insert(key, rights.clone());
        }
        RightsDecision::Decided(rights)
    }

    /// Returns whether all grants that gave these rights are still among the loaded ones.
    pub(super) fn contain_grants_of(&self, rights: &OpenedRights) -> bool {
        let current: HashSet<String> = self.grants.grants.iter().map(Grant::identity).collect();
        rights.grant_identities.iter().all(|grant| current.contains(grant))
    }

    /// Lists the rules that a plugin lost because its component changed. Lists them once for each component:
    /// `announced` has the plugins and digests for which they were listed. A component with a grant for its own digest
    /// has lost nothing.
    pub(super) fn newly_lost_rules(
        &self,
        request: AuthorityRequest<'_>,
        rights: &OpenedRights,
        announced: &mut HashSet<(String, String)>,
    ) -> Vec<String> {
        let stale = stale_grants(&self.grants, request.plugin, request.digest);
        let is_for_digest =
            |grant: &Grant| grant.version != GrantedVersion::Any && grant.is_for(request.plugin, request.digest);
        if stale.is_empty() || self.grants.grants.iter().any(is_for_digest) {
            return Vec::new();
        }
        if !announced.insert((request.plugin.to_string(), request.digest.to_owned())) {
            return Vec::new();
        }
        let before = EffectiveRights::of_grants(request.declared, stale).rules.describe();
        let now = rights.effective.rules.describe();
        before.into_iter().filter(|rule| !now.contains(rule)).collect()
    }
}
