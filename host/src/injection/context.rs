//! What a strategy sees.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::entities::Entities;
use crate::tool::{Arguments, Message, Tool, ToolName, ToolResult, ToolSet, parse_json};

/// The conversation at the moment after a call.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct InjectionContext<'a> {
    history: &'a [Message],
    tools: &'a ToolSet,
    entities: &'a Entities,
    call: &'a CompletedCall,
    iteration: u32,
}

impl<'a> InjectionContext<'a> {
    /// Describes the moment after `call`.
    #[must_use]
    pub fn new(
        history: &'a [Message],
        tools: &'a ToolSet,
        entities: &'a Entities,
        call: &'a CompletedCall,
        iteration: u32,
    ) -> Self {
        Self {
            history,
            tools,
            entities,
            call,
            iteration,
        }
    }

    /// Returns what was said, up to the answer to this call.
    #[must_use]
    pub fn history(&self) -> &'a [Message] {
        self.history
    }

    /// Returns the tools that can be called.
    #[must_use]
    pub fn tools(&self) -> &'a ToolSet {
        self.tools
    }

    /// Returns the entities that the conversation met so far.
    #[must_use]
    pub fn entities(&self) -> &'a Entities {
        self.entities
    }

    /// Returns the call that was completed.
    #[must_use]
    pub fn call(&self) -> &'a CompletedCall {
        self.call
    }

    /// Returns how many inferences this run has made, the first one being 1.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.iteration
    }
}

/// A call with its result.
#[derive(Clone)]
#[non_exhaustive]
pub struct CompletedCall {
    /// The call's id in the history.
    pub id: String,
    /// The name under which the tool was called.
    pub name: ToolName,
    /// What it was called with.
    pub arguments: Arguments,
    /// The tool that ran.
    pub tool: Arc<dyn Tool>,
    /// What it answered.
    pub result: ToolResult,
}

impl CompletedCall {
    /// Describes a completed call.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: ToolName,
        arguments: Arguments,
        tool: Arc<dyn Tool>,
        result: ToolResult,
    ) -> Self {
        Self {
            id: id.into(),
            name,
            arguments,
            tool,
            result,
        }
    }

    /// Returns the result as a value: the tool's own, else its text read as JSON, else nothing.
    #[must_use]
    pub fn value(&self) -> Option<Cow<'_, Value>> {
        match &self.result.value {
            Some(value) => Some(Cow::Borrowed(value)),
            None => parse_json(&self.result.for_llm).ok().map(Cow::Owned),
        }
    }

    /// Returns the tool and, one by one, those that it decorates, the outermost first.
    pub fn layers(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        std::iter::successors(Some(&self.tool), |tool| tool.decorated())
    }
}

impl fmt::Debug for CompletedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletedCall")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}
