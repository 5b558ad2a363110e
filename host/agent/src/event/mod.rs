//! Events of a conversation, and their observers.

mod approval;
mod compacted_history;
#[allow(clippy::module_inception, reason = "the module is named after its main type")]
mod event;
mod injection_cost;
mod nested_call;
mod observer;
mod question;
mod queued_observer;
mod recorded_artifact;
mod recorded_call;
mod recorded_error;
mod recorded_picture;
mod trace;
mod visible_tools;

pub use approval::{RecordedApprovalDecision, RecordedApprovalRequest};
pub use compacted_history::CompactedHistory;
pub use event::Event;
pub use injection_cost::InjectionCost;
pub use nested_call::{NestedCallEnd, NestedCallStart};
pub use observer::Observer;
pub(crate) use observer::{Observers, OuterConversationObservers};
pub(crate) use question::EarlierAnswers;
pub use question::{RecordedAnswer, RecordedQuestion};
pub use queued_observer::QueuedObserver;
pub use recorded_artifact::{OmittedValue, RecordedArtifact};
pub use recorded_call::{RecordedOutcome, RecordedStart, RecordedUsage, Resolution};
pub use recorded_error::RecordedError;
pub(crate) use recorded_picture::RecordedPictures;
pub use recorded_picture::{AttachedPictures, RecordedPicture};
pub use trace::{TRACE_VERSION, Trace, TraceEntry};
pub use visible_tools::visible_tools;
