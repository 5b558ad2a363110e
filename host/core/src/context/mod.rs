//! Everything that a call receives in addition to its arguments.

mod background_tasks;
mod blackboard;
mod caller;
mod deferred_work;
mod late_reviews;
mod meta_filter;
mod origin;
mod output_sink;
mod own_calls;
mod principal_name;
mod prior_decisions;
mod tool_caller;
mod tool_context;

pub use background_tasks::{BackgroundTask, BackgroundTasks, LateResult};
pub use blackboard::{Blackboard, BlackboardEntry, BlackboardLimits, BlackboardSharing, MemoryBlackboard};
pub use caller::Caller;
pub use deferred_work::{DeferredWork, DeferredWorkHandle};
pub(crate) use late_reviews::{LateReview, LateReviews};
pub use meta_filter::MetaFilter;
pub use origin::Origin;
pub use output_sink::{LogLevel, NoOutput, OutputSink};
pub use own_calls::OwnCalls;
pub use principal_name::PrincipalName;
pub(crate) use prior_decisions::PriorDecisions;
pub use tool_caller::ToolCaller;
pub use tool_context::{CHANNEL, CHAT_ID, LOOP_ID, ToolContext};
