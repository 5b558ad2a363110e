//! Agents that other agents can call.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolError, ToolResult};

/// Someone to whom a task can be handed: an [`AgenticTool`](super::AgenticTool), or a program of one's own.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Returns its name, which is that of the tool that calls it.
    fn name(&self) -> &str;

    /// Returns what it does, as a model reads it.
    fn description(&self) -> &str;

    /// Does a task. The context's blackboard is the task's own.
    ///
    /// # Errors
    /// As [`Tool::call`](crate::Tool::call).
    async fn run(&self, task: Value, context: &ToolContext) -> Result<ToolResult, ToolError>;
}

/// The agents of an application, by name.
#[derive(Clone, Default)]
pub struct Agents {
    named: BTreeMap<String, Arc<dyn Agent>>,
}

impl Agents {
    /// Makes an empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent under its name. One of the same name gives way.
    #[must_use]
    pub fn with(mut self, agent: impl Agent + 'static) -> Self {
        self.named.insert(agent.name().to_owned(), Arc::new(agent));
        self
    }

    /// Returns the agent of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when there is none; it lists those there are.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Agent>, Error> {
        self.named.get(name).ok_or_else(|| {
            let error = Error::new(
                ErrorKind::Configuration,
                Phase::Validate,
                format!("no agent is named `{name}`"),
            );
            let known: Vec<_> = self.named.keys().map(|name| format!("`{name}`")).collect();
            match known.is_empty() {
                true => error.with_suggestion("there are no agents; add one with `Agents::with`"),
                false => error.with_suggestion(format!("the agents are {}", known.join(", "))),
            }
        })
    }
}
