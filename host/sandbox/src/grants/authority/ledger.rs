//! The ledger: the uses of grants that are valid for one call or one conversation.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::conversation_number::ConversationNumber;
use crate::grants::file::UseRecord;
use crate::grants::{Grant, GrantScope, NoGrantReason};

/// The uses of grants that are valid for one call or one conversation.
///
/// The use of a grant in the grants file is recorded in a file next to the grants file, which all processes of the
/// machine share. The grants file itself does not change. The use of a grant of the application is recorded in memory,
/// because such a grant ends with the process.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The recorded uses of the grants in the grants file; `None` without a grants file.
    record: Option<UseRecord>,
    /// The identities of the application's grants that were used.
    used_application_grants: HashSet<String>,
    /// The conversation that first used each grant for one conversation, by the identity of the grant. Only this
    /// conversation may use the grant again.
    conversations: HashMap<String, ConversationNumber>,
}

/// The decisions of the [`Ledger`] for one call, by the identity of the grant: whether the grant applies to the call.
/// Empty if the ledger could not decide.
#[derive(Debug, Default)]
pub(crate) struct Admissions(HashMap<String, Result<(), NoGrantReason>>);

impl Admissions {
    /// Returns the decision about a grant. A grant without a decision does not apply: it was read after the decisions
    /// were made, so a warning is logged. If there are no decisions at all, the log already has the reason.
    pub(super) fn decision(&self, grant: &Grant) -> Result<(), NoGrantReason> {
        if let Some(decision) = self.0.get(&grant.identity()) {
            return *decision;
        }
        if !self.0.is_empty() {
            tracing::warn!(
                plugin = %grant.plugin,
                "a grant does not apply to this call, because it was added while the use of other grants was recorded"
            );
        }
        Err(NoGrantReason::UseNotRecorded)
    }
}

/// Whether a decision about a grant counts as a use of the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantUse {
    /// The decision is for a call, which uses the grant.
    Call,
    /// The decision is only shown, for example by the `explain` command. The grant stays unused.
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

    /// Decides which grants apply to a call of this conversation. Records their use if `grant_use` is
    /// [`GrantUse::Call`]. Waits for the disk, and for other processes that change the grants.
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

    /// Decides whether a grant applies. If several processes use a grant at the same time, it applies in only one of
    /// them. A grant for one conversation applies only to the conversation that used it first.
    ///
    /// # Errors
    /// [`NoGrantReason::UsedUp`] if another call or conversation has used the grant.
    /// [`NoGrantReason::UseNotRecorded`] if the use cannot be recorded, because the grant could then be used again.
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
        // Only a grant of the grants file has a position.
        let was_unused = match (self.record.as_ref().filter(|_| grant.position.is_some()), grant_use) {
            (None, GrantUse::Preview) => Ok(!self.used_application_grants.contains(&identity)),
            (None, GrantUse::Call) => Ok(self.used_application_grants.insert(identity.clone())),
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
                tracing::error!(%error, "the use of a grant cannot be recorded, so the grant does not apply");
                Err(NoGrantReason::UseNotRecorded)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;
    use crate::grants::Grants;

    /// Counts the warnings and errors in the log.
    #[derive(Clone, Default)]
    struct WarningCounter(Arc<AtomicUsize>);

    impl Subscriber for WarningCounter {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() <= Level::WARN
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    /// Returns the decision about a grant, and the number of warnings that were logged.
    fn logged_decision(admissions: &Admissions, grant: &Grant) -> (Result<(), NoGrantReason>, usize) {
        let warnings = WarningCounter::default();
        let decision = tracing::subscriber::with_default(warnings.clone(), || admissions.decision(grant));
        (decision, warnings.0.load(Ordering::Relaxed))
    }

    #[test]
    fn a_grant_that_was_added_during_the_decisions_does_not_apply_and_is_logged() {
        let grant = |plugin: &str| {
            let text = format!("version = 1\n[[grant]]\nplugin = \"{plugin}\"\nany-version = true\nscope = \"once\"\n");
            Grants::parse(text.as_bytes()).unwrap().grants.remove(0)
        };
        let (decided, added) = (grant("decided"), grant("added"));
        let conversation = ConversationNumber::default();
        let admissions = Ledger::default().admit(std::slice::from_ref(&decided), conversation, GrantUse::Preview);
        assert_eq!(logged_decision(&admissions, &decided), (Ok(()), 0));
        let not_recorded = Err(NoGrantReason::UseNotRecorded);
        assert_eq!(logged_decision(&admissions, &added), (not_recorded, 1));
        assert_eq!(
            logged_decision(&Admissions::default(), &added),
            (not_recorded, 0),
            "the failure of all decisions is logged elsewhere"
        );
    }
}
