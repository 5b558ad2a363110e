//! The memory of approvers' answers, which applies them to further calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::pattern::ArgumentPattern;
use super::request::{Approval, ApprovalAnswer, ApprovalRequest, ApprovalScope};
use crate::{Arguments, Error, ToolContext, ToolId};

/// Maximum number of remembered answers. The oldest are forgotten first; their calls need an approval again.
const ANSWERS_MAX: usize = 1_000;

/// An answer that is valid for further calls of a tool. It is bound to a digest of the tool's definition, code, effect
/// class and grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RememberedAnswer {
    /// The tool.
    pub tool: ToolId,
    /// The [digest](ApprovalRequest::digest) for which the answer was given.
    pub digest: String,
    /// The id of the run, if the answer is valid for one run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The arguments; `None` if the answer is valid for all arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RememberedArguments>,
    /// Whether the answer is valid in later conversations too.
    pub is_lasting: bool,
    /// The time at which the answer expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The reason of a denial; `None` for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
}

/// The arguments for which an answer is valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RememberedArguments {
    /// Exactly these arguments.
    Exactly(Arguments),
    /// All arguments that match a pattern.
    Matching(ArgumentPattern),
}

impl RememberedArguments {
    fn matches(&self, arguments: &Arguments) -> bool {
        match self {
            Self::Exactly(exact) => exact == arguments,
            Self::Matching(pattern) => pattern.matches(arguments),
        }
    }
}

/// A store of answers that outlive the conversation.
pub trait ApprovalStore: Send + Sync {
    /// Returns the stored answers, the oldest first.
    ///
    /// # Errors
    /// If the answers cannot be read. Then the memory begins without answers of earlier conversations.
    fn load(&self) -> Result<Vec<RememberedAnswer>, Error>;

    /// Adds an answer.
    ///
    /// # Errors
    /// If the answer cannot be stored. Then it is valid in the current conversation only.
    fn add(&self, answer: &RememberedAnswer) -> Result<(), Error>;
}

/// The remembered answers of a conversation.
#[derive(Default)]
pub struct ApprovalMemory {
    answers: Mutex<Vec<RememberedAnswer>>,
    store: Option<Arc<dyn ApprovalStore>>,
}

impl ApprovalMemory {
    /// Creates a memory for one conversation.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a memory with the answers of a store, to which it adds the lasting answers of the conversation. Expired answers
    /// are ignored. If the store has more answers than a memory can hold, the newest are used.
    #[must_use]
    pub fn stored_in(store: Arc<dyn ApprovalStore>) -> Self {
        let mut answers = store.load().unwrap_or_else(|error| {
            tracing::warn!(%error, "remembered approvals cannot be read; their calls need an approval again");
            Vec::new()
        });
        forget_expired(&mut answers);
        let excess = answers.len().saturating_sub(ANSWERS_MAX);
        answers.drain(..excess);
        Self {
            answers: Mutex::new(answers),
            store: Some(store),
        }
    }

    /// Returns the newest remembered answer to a request, and forgets the answers that have expired.
    pub(super) fn find(&self, request: &ApprovalRequest, context: &ToolContext) -> Option<Approval> {
        let mut answers = self.lock();
        forget_expired(&mut answers);
        let is_match = |answer: &&RememberedAnswer| {
            answer.tool == request.tool
                && answer.digest == request.digest
                && answer.run.as_deref().is_none_or(|run| context.loop_id() == Some(run))
                && answer
                    .arguments
                    .as_ref()
                    .is_none_or(|remembered| remembered.matches(&request.arguments))
        };
        let answer = answers.iter().rev().find(is_match)?;
        Some(match &answer.denied {
            None => Approval::Approved,
            Some(reason) => Approval::Denied { reason: reason.clone() },
        })
    }

    /// Remembers an approval or a denial whose scope extends beyond the call, and returns the remembered answer. Returns `None`
    /// for every other answer, and for the scope of a run if the call is outside a run.
    pub(super) fn remember(
        &self,
        request: &ApprovalRequest,
        answer: &ApprovalAnswer,
        context: &ToolContext,
    ) -> Option<RememberedAnswer> {
        let denied = match &answer.approval {
            Approval::Approved => None,
            Approval::Denied { reason } => Some(reason.clone()),
            Approval::Edited { .. } | Approval::Unanswered { .. } => return None,
        };
        let mut remembered = RememberedAnswer {
            tool: request.tool.clone(),
            digest: request.digest.clone(),
            run: None,
            arguments: None,
            is_lasting: false,
            expires_at: answer
                .valid_for
                .map(|time| unix_seconds(SystemTime::now() + cap_duration(time))),
            denied,
        };
        match &answer.scope {
            ApprovalScope::Call => return None,
            // Without the id of a run, the answer would be valid in the complete conversation.
            ApprovalScope::Run => remembered.run = Some(context.loop_id()?.to_owned()),
            ApprovalScope::Session => {}
            ApprovalScope::ExactArguments(arguments) => {
                remembered.arguments = Some(RememberedArguments::Exactly(arguments.clone()));
                remembered.is_lasting = true;
            }
            ApprovalScope::MatchingArguments(pattern) => {
                remembered.arguments = Some(RememberedArguments::Matching(pattern.clone()));
                remembered.is_lasting = true;
            }
            ApprovalScope::Tool => remembered.is_lasting = true,
        }
        self.add(remembered.clone());
        Some(remembered)
    }

    /// Adds an answer, such as an answer of an earlier process. Also stores an answer that is valid in later conversations.
    pub fn add(&self, answer: RememberedAnswer) {
        if answer.is_lasting
            && let Some(store) = &self.store
            && let Err(error) = store.add(&answer)
        {
            tracing::warn!(%error, "an answer cannot be stored; it is remembered for this conversation only");
        }
        let mut answers = self.lock();
        if answers.len() >= ANSWERS_MAX {
            answers.remove(0);
        }
        answers.push(answer);
    }

    /// Remembers an approval for all calls of the tool in the conversation.
    pub(super) fn remember_tool(&self, request: &ApprovalRequest) -> RememberedAnswer {
        let answer = RememberedAnswer {
            tool: request.tool.clone(),
            digest: request.digest.clone(),
            run: None,
            arguments: None,
            is_lasting: false,
            expires_at: None,
            denied: None,
        };
        self.add(answer.clone());
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RememberedAnswer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the answers that have expired.
fn forget_expired(answers: &mut Vec<RememberedAnswer>) {
    let now = unix_seconds(SystemTime::now());
    answers.retain(|answer| answer.expires_at.is_none_or(|expiry| expiry > now));
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Limits a duration to a century, because a longer duration could exceed the range of the clock.
fn cap_duration(time: Duration) -> Duration {
    time.min(Duration::from_secs(100 * 365 * 24 * 60 * 60))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct FixedStore(Vec<RememberedAnswer>);

    impl ApprovalStore for FixedStore {
        fn load(&self) -> Result<Vec<RememberedAnswer>, Error> {
            Ok(self.0.clone())
        }

        fn add(&self, _: &RememberedAnswer) -> Result<(), Error> {
            Ok(())
        }
    }

    fn answer(digest: &str, expires_at: Option<u64>) -> RememberedAnswer {
        let answer = serde_json::json!({
            "tool": "demo#write",
            "digest": digest,
            "is_lasting": true,
            "expires_at": expires_at,
        });
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn a_memory_holds_the_newest_valid_answers_of_a_store_up_to_its_limit() {
        let mut stored: Vec<_> = (0..ANSWERS_MAX + 2)
            .map(|number| answer(&number.to_string(), None))
            .collect();
        stored.extend((0..5).map(|_| answer("expired", Some(1))));
        let memory = ApprovalMemory::stored_in(Arc::new(FixedStore(stored)));
        let digests = || {
            memory
                .lock()
                .iter()
                .map(|answer| answer.digest.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(digests().len(), ANSWERS_MAX);
        assert_eq!(digests()[0], "2", "the oldest valid answers are forgotten");
        memory.add(answer("new", None));
        assert_eq!((digests().len(), digests()[0].as_str()), (ANSWERS_MAX, "3"));
        let small_memory = ApprovalMemory::stored_in(Arc::new(FixedStore(vec![answer("one", None)])));
        assert_eq!(small_memory.lock().len(), 1);
    }
}
