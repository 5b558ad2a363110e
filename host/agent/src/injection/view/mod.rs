//! Read-only views of a conversation, from which strategies derive their decisions.

mod call_log;
mod callable_tools;
mod completed_call;
mod conversation;
mod lineage;
mod turn_context;

pub use call_log::{CallLog, PastCall};
pub use callable_tools::CallableTools;
pub use completed_call::{CompletedCall, InjectionContext};
pub use conversation::ConversationView;
pub use lineage::Lineage;
pub use turn_context::TurnContext;
