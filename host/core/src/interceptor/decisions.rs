//! The calls and outcomes that an interceptor receives, and its decisions.

use async_trait::async_trait;
use serde_json::Value;

use crate::{Arguments, Artifact, Error, ToolContext, ToolId};

/// A call of a tool, as an interceptor sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InterceptedCall {
    /// The id of the tool. A method has the same id for all entities of its type.
    pub tool: ToolId,
    /// The first name in the [definition](crate::ToolDefinition::names) of the tool. The model may know the tool by another name,
    /// because two tools of a conversation never have the same name.
    pub name: String,
    /// The arguments of the caller, or those that an earlier interceptor set.
    pub arguments: Arguments,
}

impl InterceptedCall {
    /// Creates the description of a call.
    #[must_use]
    pub fn new(tool: ToolId, name: impl Into<String>, arguments: Arguments) -> Self {
        Self {
            tool,
            name: name.into(),
            arguments,
        }
    }
}

/// The decision about a call before it runs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallDecision {
    /// The call runs.
    Continue,
    /// The call runs with other arguments.
    Edit(Arguments),
    /// The call does not run.
    Deny {
        /// The reason, which the model receives.
        reason: String,
    },
}

/// The outcome of a call, as an interceptor sees it: the result, or the error of a call without a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallOutcome {
    /// The text that the model reads.
    pub for_llm: String,
    /// The text that the user reads, if it differs.
    pub for_user: Option<String>,
    /// Whether the tool failed, or the call ended without a result.
    pub is_error: bool,
    /// The value of the result. `None` if the result has no value, or if `for_llm` already is this value as text: as JSON, or as
    /// a string without quotes. For a call without a result, the details of its error.
    pub value: Option<Value>,
    /// The objects that the tool returned in addition to the text. Empty for a call without a result.
    pub artifacts: Vec<Artifact>,
}

/// The decision about an outcome before the model or the user reads it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutcomeReview {
    /// The outcome stays as it is.
    Keep,
    /// The outcome is replaced.
    ///
    /// A result loses its Rust value ([`output`](crate::ToolResult::output)) and the cause of its failure
    /// ([`source`](crate::ToolResult::source)), which belong to the old outcome. The result of a call that continues in the
    /// background stays pending.
    ///
    /// An error of a call without a result keeps its kind. It gets a new message and new details. Its suggestion and its
    /// log are removed, because they could repeat the old message.
    Replace(CallOutcome),
    /// The outcome is withheld. The call may have taken effect.
    Withhold {
        /// The reason, which the model receives.
        reason: String,
    },
}

/// Code that decides about the calls of tools. An interceptor receives each call before the call runs, and each outcome before
/// the model or the user reads it. The host's own tools, such as `search_tools`, are not intercepted.
///
/// [`Interception`](crate::Interception) applies an interceptor as a [guard](crate::Decorator::is_guard), which covers nested
/// calls, agents, entities and late results. An error of the interceptor denies the call, or withholds its outcome.
#[async_trait]
pub trait Interceptor: Send + Sync {
    /// Returns the name, for error messages and the log.
    fn name(&self) -> &str;

    /// Decides about a call before the call runs. If the call is cancelled during the decision, the returned future is dropped.
    ///
    /// # Errors
    /// Any error denies the call. The error is logged; the model reads only that the interceptor failed.
    async fn before(&self, call: &InterceptedCall, context: &ToolContext) -> Result<CallDecision, Error>;

    /// Decides about the outcome of a call: a result, or an error that the model receives. The late result of a background task is
    /// another outcome, which is reviewed when the task delivers it.
    ///
    /// # Errors
    /// Any error withholds the outcome. The error is logged; the model reads only that the interceptor failed.
    async fn after(
        &self,
        call: &InterceptedCall,
        outcome: CallOutcome,
        context: &ToolContext,
    ) -> Result<OutcomeReview, Error>;
}
