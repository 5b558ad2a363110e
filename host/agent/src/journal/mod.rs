//! The journal: the stored events of a conversation. A request to the model and a call begin only after all earlier events
//! are stored.

mod approval_question;
mod child_calls;
mod compaction_plan;
mod earlier_keys;
mod error;
mod history;
mod interrupted_run;
mod memory;
mod pending_approval;
mod port;
mod session_journal;
mod summary;

pub use child_calls::ChildCall;
pub(crate) use compaction_plan::{
    CompactionPlan, compact, estimated_tokens, history_tokens, pin_last_user_message, plan_compaction, transcript,
};
pub use error::JournalError;
pub(crate) use history::{interrupted_answer, messages};
pub use interrupted_run::{InterruptedRun, UnresolvedCall};
pub(crate) use interrupted_run::{OpenCall, interrupted_run};
pub use memory::MemoryJournalStore;
pub use pending_approval::PendingApproval;
pub use port::{JournalStore, JournalWriter, SessionId, check_fork};
pub use session_journal::Journal;
pub use summary::SessionSummary;

/// The name under which a tool finds the idempotency key of its call in its context. Every call of a session has a key of its
/// own, also a call that a tool or an agent makes. A call that runs again after a crash has the same idempotency key.
pub const IDEMPOTENCY_KEY: &str = "idempotency_key";
