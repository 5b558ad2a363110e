//! The name of an agent, for telemetry.

/// The name of the agent in whose conversation a call runs, as an extension of the context.
#[derive(Clone, Debug)]
pub(crate) struct AgentName(pub(crate) String);
