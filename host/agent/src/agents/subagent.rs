//! Subagents: tools that pass a typed task to an agent.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::agent::{Agent, Agents};
use toolwit_core::Error;
use toolwit_core::text::parse_json;
use toolwit_core::{
    Arguments, Artifact, BlackboardSharing, InputValidator, Tool, ToolContext, ToolDefinition, ToolError, ToolId,
    ToolResult,
};

/// The name of the task on the agent's blackboard.
const TASK_NAME: &str = "task";

/// A tool that passes a typed task to an [`Agent`].
///
/// It has the name and the description of its agent. Its input schema is that of the type that it consumes.
///
/// If the caller has a blackboard, the agent works on a blackboard of its own, which starts with the objects of the caller's
/// blackboard and the task. When the agent returns a result, the objects that the agent added are shared with the caller
/// according to a [`BlackboardSharing`] rule.
///
/// If the agent succeeded and returned neither artifacts nor a signal, its answer is added to the result as an artifact.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwit_agent::{AgenticTool, Agents, Subagent};
/// use toolwit_core::BlackboardSharing;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct WorksToFind { composers: Vec<String>, era: String }
///
/// let agents = Agents::new().with_agent(AgenticTool::new("performance_finder", "Finds performances."));
/// let finder = Subagent::by_name(&agents, "performance_finder")?
///     .consuming::<WorksToFind>()?
///     .with_sharing(BlackboardSharing::Kinds(vec!["Performance".into()]));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct Subagent {
    definition: ToolDefinition,
    validator: InputValidator,
    /// Parses a task as the consumed type, which checks rules that a schema cannot express.
    try_parse: fn(Value) -> Result<(), serde_json::Error>,
    /// The name of the consumed type. On the blackboard, the task is an artifact of this type.
    task_type: &'static str,
    agent: Arc<dyn Agent>,
    sharing: BlackboardSharing,
}

/// Builds a [`Subagent`] from an agent and the type of its tasks.
#[must_use = "call `consuming` with the type of the task"]
pub struct SubagentBuilder<A: ?Sized> {
    agent: Arc<dyn Agent>,
    /// Binds the type parameter `A`: the type of the agent, or `dyn Agent` for an agent that was found by name.
    agent_type: PhantomData<fn(&A)>,
}

impl Subagent {
    /// Starts building a subagent for an agent.
    pub fn of<A: Agent + 'static>(agent: A) -> SubagentBuilder<A> {
        SubagentBuilder {
            agent: Arc::new(agent),
            agent_type: PhantomData,
        }
    }

    /// Starts building a subagent for the agent `A::default()`.
    pub fn of_type<A: Agent + Default + 'static>() -> SubagentBuilder<A> {
        Self::of(A::default())
    }

    /// Starts building a subagent for the agent with this name.
    ///
    /// # Errors
    /// As [`Agents::get`].
    pub fn by_name(agents: &Agents, name: &str) -> Result<SubagentBuilder<dyn Agent>, Error> {
        Ok(SubagentBuilder {
            agent: agents.get(name)?.clone(),
            agent_type: PhantomData,
        })
    }

    /// Sets which objects that the agent added are shared with the caller's blackboard. By default, all are shared.
    #[must_use]
    pub fn with_sharing(mut self, sharing: BlackboardSharing) -> Self {
        self.sharing = sharing;
        self
    }
}

impl<A: ?Sized> SubagentBuilder<A> {
    /// Builds a tool that parses its arguments as a `T`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if the JSON Schema of `T` is not of type `object`.
    pub fn consuming<T: DeserializeOwned + JsonSchema>(self) -> Result<Subagent, Error> {
        let agent = self.agent;
        let (name, description) = (agent.name(), agent.description());
        let definition = ToolDefinition::typed::<T>(ToolId::native(name), name, description);
        Ok(Subagent {
            validator: InputValidator::of(&definition)?,
            definition,
            try_parse: |task| serde_json::from_value::<T>(task).map(drop),
            task_type: std::any::type_name::<T>(),
            agent,
            sharing: BlackboardSharing::default(),
        })
    }
}

#[async_trait]
impl Tool for Subagent {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let task = Value::Object(self.validator.check(arguments)?);
        (self.try_parse)(task.clone()).map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let Ok(caller_blackboard) = context.blackboard() else {
            return Ok(self.with_answer_artifact(self.agent.run(task, context).await?));
        };
        // The task is stored on an intermediate blackboard, so that it is not shared with the caller.
        let intermediate = caller_blackboard.new_child();
        let task_object = Artifact::new(self.task_type, task.clone());
        intermediate
            .put_named(TASK_NAME, task_object)
            .map_err(ToolError::Model)?;
        let agent_blackboard = intermediate.new_child();
        let mut result = self
            .agent
            .run(task, &context.clone().with_blackboard(agent_blackboard.clone()))
            .await?;
        if let Err(error) = self.sharing.apply(&*agent_blackboard, &**caller_blackboard) {
            tracing::warn!(agent = self.agent.name(), %error, "some objects of a subagent were not shared");
            result
                .for_llm
                .push_str(&format!("\n[some objects of the agent were not shared: {error}]"));
        }
        Ok(self.with_answer_artifact(result))
    }

    fn is_agent(&self) -> bool {
        true
    }
}

impl Subagent {
    /// Adds the answer as an artifact, unless the agent failed, ended with a signal or returned artifacts.
    fn with_answer_artifact(&self, result: ToolResult) -> ToolResult {
        if result.is_error() || result.signal.is_some() || !result.artifacts.is_empty() {
            return result;
        }
        let value = match &result.value {
            Some(value) => value.clone(),
            None => parse_json(&result.for_llm).unwrap_or_else(|_| Value::String(result.for_llm.clone())),
        };
        result.with_artifact(Artifact::new(self.agent.name(), value))
    }
}
