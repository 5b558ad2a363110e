//! The outcome of a call: a result, or an error for the model or the operator.

mod call_usage;
mod denied_access;
mod signal;
mod tool_error;
mod tool_result;

pub use call_usage::CallUsage;
pub use denied_access::{DeniedAccess, MissingGrant};
pub use signal::Signal;
pub use tool_error::ToolError;
pub use tool_result::{Audience, Disposition, FollowUpCall, ToolResult, ToolStatus};
