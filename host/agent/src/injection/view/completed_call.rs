//! A completed call, and the conversation directly after it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::call_log::PastCall;
use super::conversation::ConversationView;
use crate::injection::entity::Entities;
use toolwit_core::{
    Arguments, Message, Tool, ToolName, ToolResult, ToolSet, decorator_chain, text::parse_json, tool_identities,
};

/// The conversation directly after a completed call: a [`ConversationView`], and the call with its result.
#[derive(Clone, Copy)]
pub struct InjectionContext<'a> {
    view: ConversationView<'a>,
    call: &'a CompletedCall,
}

impl<'a> InjectionContext<'a> {
    /// Creates the context of `call` in a conversation in its first turn.
    #[must_use]
    pub fn new(
        history: &'a [Message],
        tools: &'a ToolSet,
        entities: &'a Entities,
        call: &'a CompletedCall,
        iteration: u32,
    ) -> Self {
        Self::after(
            call,
            ConversationView::new(history, tools)
                .with_entities(entities)
                .with_position(1, iteration),
        )
    }

    /// Creates the context of `call` in this view.
    #[must_use]
    pub fn after(call: &'a CompletedCall, view: ConversationView<'a>) -> Self {
        Self { view, call }
    }

    /// Returns the completed call.
    #[must_use]
    pub fn call(&self) -> &'a CompletedCall {
        self.call
    }

    /// Returns the view of the conversation. Its history ends with the answer to the call, but its call log does not contain
    /// the call yet.
    #[must_use]
    pub fn view(&self) -> ConversationView<'a> {
        self.view
    }
}

impl<'a> Deref for InjectionContext<'a> {
    type Target = ConversationView<'a>;

    fn deref(&self) -> &ConversationView<'a> {
        &self.view
    }
}

/// A call directly after it returned, with its tool and its full result. Its entry in the [`CallLog`](super::CallLog) is a
/// [`PastCall`], which has no result.
#[derive(Clone)]
#[non_exhaustive]
pub struct CompletedCall {
    /// Id of the call in the history.
    pub id: String,
    /// Name under which the model called the tool.
    pub name: ToolName,
    /// Arguments of the call.
    pub arguments: Arguments,
    /// The tool that ran.
    pub tool: Arc<dyn Tool>,
    /// Result of the call.
    pub result: ToolResult,
}

impl CompletedCall {
    /// Creates a completed call from its parts.
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

    /// Returns the structured result: the tool's value, or else its text parsed as JSON. Returns `None` if the text is not
    /// JSON.
    #[must_use]
    pub fn value(&self) -> Option<Cow<'_, Value>> {
        match &self.result.value {
            Some(value) => Some(Cow::Borrowed(value)),
            None => parse_json(&self.result.for_llm).ok().map(Cow::Owned),
        }
    }

    /// Converts the call to its entry in the [`CallLog`](super::CallLog).
    #[must_use]
    pub fn to_past_call(&self, turn: u32) -> PastCall {
        PastCall {
            turn,
            name: self.name.clone(),
            tool: self.tool.definition().id.clone(),
            identities: tool_identities(&self.tool),
            arguments: self.arguments.clone(),
            is_error: self.result.is_error(),
            artifacts: self
                .result
                .artifacts
                .iter()
                .map(|artifact| artifact.kind.clone())
                .collect(),
            has_revealed_tools: self.result.revealed_tools.is_some(),
        }
    }

    /// Returns the tool and the tools that it decorates, outermost first.
    pub fn decorator_chain(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        decorator_chain(&self.tool)
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
