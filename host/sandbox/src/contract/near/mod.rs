//! `near:agent/tool`: the tool of a component of IronClaw.

mod execute;
mod outcome;
mod schema;

pub(crate) use execute::{Execute, ExecuteTyped};
pub(crate) use outcome::tool_result;
pub(crate) use schema::{TextFunction, schema_of_object};
