//! Read-only views of a conversation, from which strategies derive their decisions.
//!
//! - A [`CompletedCall`] is a call directly after it returned, with its tool and its full result.
//! - A [`PastCall`] is the entry of an earlier call in the [`CallLog`]. It has no result.
//! - [`Lineage`] records which tool injected which tools: it maps each injected tool to its parent.

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
