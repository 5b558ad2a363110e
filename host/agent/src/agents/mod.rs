//! Agents: tools that run a conversation of their own, and agents that other agents call.

mod agent;
mod agentic_run;
mod agentic_tool;
mod subagent;

pub use agent::{Agent, Agents};
pub use agentic_tool::AgenticTool;
pub use subagent::{Subagent, SubagentBuilder};
