//! The grants of a host that passed validation, with their directories opened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::directory_opener::{DirectoryOpener, OpenedRule};
use super::ledger::Admissions;
use super::rights::{AuthorityRequest, OpenedRights};
use crate::grants::{EffectiveRights, Grant, GrantedVersion, Grants, NoGrantReason, stale_grants};

/// The rights of a plugin, or the grants about which the ledger must decide first.
pub(super) enum RightsDecision {
    Decided(Arc<OpenedRights>),
    /// Those applicable grants that are valid for one call or one conversation only.
    Undecided(Vec<Grant>),
}

/// The grants that passed validation, with their directories opened.
pub(super) struct LoadedGrants {
    grants: Grants,
    /// The directory rules of each grant, in their order, after the attempt to open their directories.
    opened_rules: Vec<Vec<OpenedRule>>,
    /// The cached rights, by plugin name and digest. Rights are cached only if all applicable grants are permanent,
    /// because other grants can be used up.
    cached_rights: HashMap<(String, String), Arc<OpenedRights>>,
}

impl LoadedGrants {
    pub(super) fn open(grants: Vec<Grant>, directory_opener: &mut DirectoryOpener) -> Self {
        Self {
            opened_rules: directory_opener.open(&grants),
            grants: Grants { grants },
            cached_rights: HashMap::new(),
        }
    }

    pub(super) fn grants(&self) -> &[Grant] {
        &self.grants.grants
    }

    /// Returns whether a granted directory has been removed, or a missing one created, since the grants were loaded.
    pub(super) fn is_outdated(&self) -> bool {
        self.opened_rules.iter().flatten().any(OpenedRule::is_outdated)
    }

    /// Computes the rights of a plugin. `admissions` has the decisions about applicable grants that are not permanent.
    /// If there are such grants and `admissions` is `None`, returns the grants as undecided.
    pub(super) fn rights(&mut self, request: AuthorityRequest<'_>, admissions: Option<&Admissions>) -> RightsDecision {
        let key = (request.plugin.to_string(), request.digest.to_owned());
        if let Some(rights) = self.cached_rights.get(&key) {
            return RightsDecision::Decided(rights.clone());
        }
        let grants = &self.grants.grants;
        let is_applicable = |index: &usize| grants[*index].is_for(request.plugin, request.digest);
        let applicable_indices: Vec<usize> = (0..grants.len()).filter(is_applicable).collect();
        let is_permanent = |index: &usize| grants[*index].is_permanent();
        let are_all_permanent = applicable_indices.iter().all(is_permanent);
        if !are_all_permanent && admissions.is_none() {
            let undecided = applicable_indices.iter().filter(|index| !is_permanent(index));
            return RightsDecision::Undecided(undecided.map(|index| grants[*index].clone()).collect());
        }
        let mut admitted_indices = Vec::with_capacity(applicable_indices.len());
        let mut refusal_reason = NoGrantReason::UsedUp;
        for index in &applicable_indices {
            let decision = match admissions {
                Some(admissions) if !is_permanent(index) => admissions.decision(&grants[*index]),
                _ => Ok(()),
            };
            match decision {
                Ok(()) => admitted_indices.push(*index),
                Err(reason) => refusal_reason = reason,
            }
        }
        // Grants that are not permanent come first, as in `EffectiveRights::of_grants`. The directories need the same order
        // as the rules, because the first rule for a guest path applies.
        admitted_indices.sort_by_key(is_permanent);
        let rights = if applicable_indices.is_empty() {
            // No grant applies. `EffectiveRights::new` finds the reason: only grants for other digests, or no grant at all.
            let effective = EffectiveRights::new(request.declared, &self.grants, request.plugin, request.digest);
            OpenedRights::new(effective, std::iter::empty(), Vec::new())
        } else if admitted_indices.is_empty() {
            OpenedRights::none(request.declared, refusal_reason)
        } else {
            let admitted_grants = || admitted_indices.iter().map(|index| &grants[*index]);
            let effective = EffectiveRights::of_grants(request.declared, admitted_grants());
            let opened_rules = admitted_indices.iter().flat_map(|index| &self.opened_rules[*index]);
            let grant_identities = admitted_grants().map(Grant::identity).collect();
            OpenedRights::new(effective, opened_rules, grant_identities)
        };
        if are_all_permanent {
            self.cached_rights.insert(key, rights.clone());
        }
        RightsDecision::Decided(rights)
    }

    /// Returns whether all grants that gave these rights are still among the loaded grants.
    pub(super) fn contain_grants_of(&self, rights: &OpenedRights) -> bool {
        let loaded: HashSet<String> = self.grants.grants.iter().map(Grant::identity).collect();
        rights.grant_identities.iter().all(|identity| loaded.contains(identity))
    }

    /// Lists the rules that a plugin lost because its component changed. Lists them only once for each component:
    /// `reported_losses` has the names and digests of the plugins for which this was done. A component with a grant for
    /// its own digest has lost nothing.
    pub(super) fn newly_lost_rules(
        &self,
        request: AuthorityRequest<'_>,
        rights: &OpenedRights,
        reported_losses: &mut HashSet<(String, String)>,
    ) -> Vec<String> {
        let stale = stale_grants(&self.grants, request.plugin, request.digest);
        let is_for_digest =
            |grant: &Grant| grant.version != GrantedVersion::Any && grant.is_for(request.plugin, request.digest);
        if stale.is_empty() || self.grants.grants.iter().any(is_for_digest) {
            return Vec::new();
        }
        if !reported_losses.insert((request.plugin.to_string(), request.digest.to_owned())) {
            return Vec::new();
        }
        let earlier_rules = EffectiveRights::of_grants(request.declared, stale).rules.describe();
        let current_rules = rights.effective.rules.describe();
        let is_lost = |rule: &String| !current_rules.contains(rule);
        earlier_rules.into_iter().filter(is_lost).collect()
    }
}
