//! An agent as a tool that takes a typed task.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::agent_port::{Agent, Agents};
use toolwit_core::Error;
use toolwit_core::text::parse_json;
use toolwit_core::{
    Arguments, Artifact, BlackboardSharing, InputValidator, Tool, ToolContext, ToolDefinition, ToolError, ToolId,
    ToolResult,
};

/// The name under which the task lies on the agent's blackboard.
const TASK: &str = "task";

/// A tool that hands a typed task to an [`Agent`].
///
/// It has the name and the description of its agent, and the schema of the type that it consumes. The agent works on a blackboard of its own, which
/// begins with what is on the caller's; what it puts there is shared back by rule when it is done. Its result is an artifact too.
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
/// let agents = Agents::new().with(AgenticTool::new("performance_finder", "Finds performances."));
/// let finder = Subagent::by_name(&agents, "performance_finder")?
///     .consuming::<WorksToFind>()?
///     .with_sharing(BlackboardSharing::Kinds(vec!["Performance".into()]));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct Subagent {
    definition: ToolDefinition,
    input: InputValidator,
    /// Reads a task as the type that is consumed, so that what its schema cannot say is checked too.
    read: fn(Value) -> Result<(), serde_json::Error>,
    kind: &'static str,
    agent: Arc<dyn Agent>,
    sharing: BlackboardSharing,
}

/// An agent that waits to be told what it consumes.
#[must_use = "say what the agent consumes"]
pub struct SubagentOf<A: ?Sized> {
    agent: Arc<dyn Agent>,
    of: PhantomData<fn(&A)>,
}

impl Subagent {
    /// Takes an agent.
    pub fn of<A: Agent + 'static>(agent: A) -> SubagentOf<A> {
        SubagentOf {
            agent: Arc::new(agent),
            of: PhantomData,
        }
    }

    /// Takes an agent by its type.
    pub fn of_type<A: Agent + Default + 'static>() -> SubagentOf<A> {
        Self::of(A::default())
    }

    /// Takes the agent of this name.
    ///
    /// # Errors
    /// As [`Agents::get`].
    pub fn by_name(agents: &Agents, name: &str) -> Result<SubagentOf<dyn Agent>, Error> {
        Ok(SubagentOf {
            agent: agents.get(name)?.clone(),
            of: PhantomData,
        })
    }

    /// Says what of the agent's objects reaches the caller's blackboard; everything by default.
    #[must_use]
    pub fn with_sharing(mut self, sharing: BlackboardSharing) -> Self {
        self.sharing = sharing;
        self
    }
}

impl<A: ?Sized> SubagentOf<A> {
    /// Makes the tool, whose arguments are a `T`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) when `T` is no object.
    pub fn consuming<T: DeserializeOwned + JsonSchema>(self) -> Result<Subagent, Error> {
        let agent = self.agent;
        let (name, description) = (agent.name(), agent.description());
        let definition = ToolDefinition::typed::<T>(ToolId::native(name), name, description);
        Ok(Subagent {
            input: InputValidator::of(&definition)?,
            definition,
            read: |task| serde_json::from_value::<T>(task).map(drop),
            kind: std::any::type_name::<T>(),
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
        let task = Value::Object(self.input.check(arguments)?);
        (self.read)(task.clone()).map_err(|error| ToolError::invalid_arguments(error.to_string()))?;
        let Ok(parent) = context.blackboard() else {
            return Ok(self.with_artifact(self.agent.run(task, context).await?));
        };
        // The task lies on a board between the two, so that it is not shared back.
        let between = parent.spawn();
        let object = Artifact::new(self.kind, task.clone());
        between.put_named(TASK, object).map_err(ToolError::Model)?;
        let own = between.spawn();
        let mut result = self
            .agent
            .run(task, &context.clone().with_blackboard(own.clone()))
            .await?;
        if let Err(error) = self.sharing.apply(&*own, &**parent) {
            tracing::warn!(agent = self.agent.name(), %error, "not all of a subagent's objects are shared");
            result
                .for_llm
                .push_str(&format!("\n[not all of its objects are shared: {error}]"));
        }
        Ok(self.with_artifact(result))
    }

    fn is_agent(&self) -> bool {
        true
    }
}

impl Subagent {
    /// Makes the answer an artifact, unless the agent handed over its own or has none.
    fn with_artifact(&self, result: ToolResult) -> ToolResult {
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
