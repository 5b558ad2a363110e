//! The name of an agent, for telemetry.

/// The name of the agent in whose conversation a call runs. It is an extension of the call's [`ToolContext`](toolwit_core::ToolContext).
#[derive(Clone, Debug)]
pub(crate) struct AgentName(pub(crate) String);
