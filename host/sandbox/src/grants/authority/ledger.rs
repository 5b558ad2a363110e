//! The ledger: the uses of grants that are valid for one call or one conversation.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::conversation_number::ConversationNumber;
use crate::grants::file::UseRecord;
use crate::grants::{Grant, GrantScope, NoGrantReason};

/// The uses of grants that are valid for one call or one conversation.
///
/// The uses of grants in the grants file are recorded in a file next to it, for all processes of the machine; the grants file
/// itself is not written. The uses of the application's grants are in memory, because these grants end with the process.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The recorded uses of the grants in the grants file; `None` without a grants file.
    record: Option<UseRecord>,
    /// The identities of the application's grants that were used.
    used_in_memory: HashSet<String>,
    /// The conversation that used a grant for one conversation first, by the identity of the grant. Only this conversation may
    /// use the grant again.
    conversations: HashMap<String, ConversationNumber>,
}

/// The decisions whether grants that are valid for one call or one conversation apply to a call, by the identities of
/// the grants.
#[derive(Debug, Default)]
pub(crate) struct Admissions(HashMap<String, Result<(), NoGrantReason>>);

impl Admissions {
    /// Returns the decision about a grant. A grant that was read after the decisions were made does not apply.
    pub(super) fn of(&self, grant: &Grant) -> Result<(), NoGrantReason> {
        let decision = self.0.get(&grant.identity()).copied();
        decision.unwrap_or(Err(NoGrantReason::UseNotRecorded))
    }
}

/// Whether looking up a grant uses it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantUse {
    /// A call uses the grant.
    Call,
    /// The grant is only looked up, for example to explain a decision.
    Preview,
}

impl Ledger {
    /// Creates the ledger of a grants file.
    pub(crate) fn of(grants_file: &Path) -> Self {
        Self {
            record: Some(UseRecord::of(grants_file)),
            ..Self::default()
        }
    }

    /// Decides which grants apply to a call of this conversation, and records their use for [`GrantUse::Call`]. Blocks on the
    /// disk, and on other processes that change the grants.
    pub(crate) fn admit(
        &mut self,
        grants: &[Grant],
        conversation: ConversationNumber,
        grant_use: GrantUse,
    ) -> Admissions {
        let decisions = grants
            .iter()
            .map(|grant| (grant.identity(), self.admit_one(grant, conversation, grant_use)));
        Admissions(decisions.collect())
    }

    /// Decides whether a grant applies. If several processes use a grant at the same time, it applies in only one of them. A
    /// grant for one conversation applies only to the conversation that used it first.
    ///
    /// # Errors
    /// [`NoGrantReason::UsedUp`], and [`NoGrantReason::UseNotRecorded`] for a use that cannot be recorded, because the
    /// grant could be used again.
    fn admit_one(
        &mut self,
        grant: &Grant,
        conversation: ConversationNumber,
        grant_use: GrantUse,
    ) -> Result<(), NoGrantReason> {
        if grant.is_permanent() {
            return Ok(());
        }
        let identity = grant.identity();
        let is_for_conversation = grant.scope == GrantScope::Session;
        if is_for_conversation && let Some(owner) = self.conversations.get(&identity) {
            return if *owner == conversation {
                Ok(())
            } else {
                Err(NoGrantReason::UsedUp)
            };
        }
        let was_unused = match (self.record.as_ref().filter(|_| grant.position.is_some()), grant_use) {
            (None, GrantUse::Preview) => Ok(!self.used_in_memory.contains(&identity)),
            (None, GrantUse::Call) => Ok(self.used_in_memory.insert(identity.clone())),
            (Some(record), GrantUse::Preview) => record.would_add(&identity),
            (Some(record), GrantUse::Call) => record.add(&identity),
        };
        match was_unused {
            Ok(true) => {
                if is_for_conversation && grant_use == GrantUse::Call {
                    self.conversations.insert(identity, conversation);
                }
                Ok(())
            }
            Ok(false) => Err(NoGrantReason::UsedUp),
            Err(error) => {
                tracing::error!(%error, "the use of a grant cannot be recorded, so that it does not apply");
                Err(NoGrantReason::UseNotRecorded)
            }
        }
    }
}
