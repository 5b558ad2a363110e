//! The effective rights of a plugin, with the granted directories opened.

use std::collections::HashSet;
use std::sync::Arc;

use super::conversation_number::ConversationNumber;
use super::directory_opener::OpenedRule;
use crate::grants::directories::OpenDirectory;
use crate::grants::{AccessMode, DeclaredCapabilities, EffectiveRights, NoGrantReason};

/// A request for the authority of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuthorityRequest<'a> {
    pub(crate) plugin: &'a Arc<str>,
    /// The rights of the plugin without any grant. The calls of the plugin share them.
    pub(crate) no_rights: &'a Arc<OpenedRights>,
    pub(crate) digest: &'a str,
    pub(crate) declared: &'a DeclaredCapabilities,
    pub(crate) conversation: ConversationNumber,
    /// The rights of the calling plugin, if a plugin makes the call.
    pub(crate) caller: Option<&'a EffectiveRights>,
}

/// The effective rights of a plugin, with the granted directories opened.
#[derive(Debug, Default)]
pub(crate) struct OpenedRights {
    pub(crate) effective: EffectiveRights,
    directories: Vec<Arc<OpenDirectory>>,
    /// The identities of the grants that give the rights.
    pub(super) grant_identities: Vec<String>,
}

impl OpenedRights {
    /// Combines rights with the opened directories of their rules. If `opened_rules` has several rules for one guest
    /// path, the first rule applies.
    pub(super) fn new<'a>(
        mut effective: EffectiveRights,
        opened_rules: impl Iterator<Item = &'a OpenedRule>,
        grant_identities: Vec<String>,
    ) -> Arc<Self> {
        let mut directories: Vec<Arc<OpenDirectory>> = Vec::new();
        let mut visited_paths = HashSet::new();
        let granted_paths: HashSet<String> = effective.rules.files.iter().map(|rule| rule.guest.clone()).collect();
        for rule in opened_rules.filter(|rule| granted_paths.contains(&rule.guest)) {
            if !visited_paths.insert(&rule.guest) {
                continue;
            }
            let guest = rule.guest.clone();
            match &rule.directory {
                Ok(directory) => {
                    effective.real_paths.insert(guest, directory.path.clone());
                    directories.push(directory.clone());
                }
                Err(refused) => {
                    effective.unenforceable_directories.insert(guest, refused.rule.clone());
                }
            }
        }
        Arc::new(Self {
            effective,
            directories,
            grant_identities,
        })
    }

    /// Returns the rights of a plugin to which no grant applies.
    pub(crate) fn none(declared: &DeclaredCapabilities, reason: NoGrantReason) -> Arc<Self> {
        Arc::new(Self {
            effective: EffectiveRights::none(declared, reason),
            directories: Vec::new(),
            grant_identities: Vec::new(),
        })
    }

    /// Narrows the rights to those that the calling plugin also has, as [`EffectiveRights::narrowed_to`] does.
    pub(super) fn narrowed_to(&self, caller: &EffectiveRights) -> Arc<Self> {
        self.with_effective(self.effective.narrowed_to(caller))
    }

    /// Returns a copy with other effective rights, and with the same directories and grants.
    pub(super) fn with_effective(&self, effective: EffectiveRights) -> Arc<Self> {
        Arc::new(Self {
            effective,
            directories: self.directories.clone(),
            grant_identities: self.grant_identities.clone(),
        })
    }

    /// Returns the directories that the guest may use, each with the access that it may have.
    pub(crate) fn directories(&self) -> Vec<(Arc<OpenDirectory>, AccessMode)> {
        let allowed = |directory: &Arc<OpenDirectory>| {
            let mode = self.effective.directory_mode(&directory.guest)?;
            Some((directory.clone(), mode))
        };
        self.directories.iter().filter_map(allowed).collect()
    }
}
