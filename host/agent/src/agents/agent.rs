//! Agents that other agents can call.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolError, ToolResult};

/// An agent that performs tasks: an [`AgenticTool`](super::AgenticTool), or a custom implementation.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Returns the name, which is also the name of the [`Subagent`](super::Subagent) that calls the agent.
    fn name(&self) -> &str;

    /// Returns the description for models.
    fn description(&self) -> &str;

    /// Performs a task. If the caller has a blackboard, a [`Subagent`](super::Subagent) passes a context with a new blackboard for
    /// each task.
    ///
    /// # Errors
    /// As [`Tool::call`](toolwit_core::Tool::call).
    async fn run(&self, task: Value, context: &ToolContext) -> Result<ToolResult, ToolError>;
}

/// The agents of an application, by name.
#[derive(Clone, Default)]
pub struct Agents {
    by_name: BTreeMap<String, Arc<dyn Agent>>,
}

impl Agents {
    /// Creates an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent under its name. It replaces an agent with the same name.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Agent + 'static) -> Self {
        self.by_name.insert(agent.name().to_owned(), Arc::new(agent));
        self
    }

    /// Returns the agent of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if no agent has this name. The suggestion lists the existing agents.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Agent>, Error> {
        self.by_name.get(name).ok_or_else(|| {
            let error = Error::new(
                ErrorKind::Configuration,
                Phase::Validate,
                format!("no agent is named `{name}`"),
            );
            if self.by_name.is_empty() {
                return error.with_suggestion("there are no agents; add one with `Agents::with_agent`");
            }
            let names: Vec<_> = self.by_name.keys().map(|name| format!("`{name}`")).collect();
            error.with_suggestion(format!("the agents are {}", names.join(", ")))
        })
    }
}
