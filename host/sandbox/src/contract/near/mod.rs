//! `near:agent/tool`: the tool of a component that was built for IronClaw.

mod execute;
mod outcome;
mod schema;

pub(crate) use execute::{ExecuteReturningFields, ExecuteReturningOutcome};
pub(crate) use outcome::tool_result;
pub(crate) use schema::{TextFunction, with_object_type};
