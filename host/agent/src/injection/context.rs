//! What a strategy sees.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::calls::PastCall;
use super::entities::Entities;
use super::view::ConversationView;
use toolwit_core::text::parse_json;
use toolwit_core::{Arguments, Message, Tool, ToolName, ToolResult, ToolSet, decorator_chain};

/// The conversation at the moment after a call.
///
/// It is a [`ConversationView`] in which one call was just answered.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct InjectionContext<'a> {
    view: ConversationView<'a>,
    call: &'a CompletedCall,
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
        Self::after(
            call,
            ConversationView::new(history, tools)
                .with_entities(entities)
                .at(1, iteration),
        )
    }

    /// Describes the moment after `call` in a view.
    #[must_use]
    pub fn after(call: &'a CompletedCall, view: ConversationView<'a>) -> Self {
        Self { view, call }
    }

    /// Returns the call that was completed.
    #[must_use]
    pub fn call(&self) -> &'a CompletedCall {
        self.call
    }

    /// Returns the conversation as it is without looking at the call.
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

    /// Returns what is remembered of it.
    #[must_use]
    pub fn to_past_call(&self, turn: u32) -> PastCall {
        PastCall {
            turn,
            name: self.name.clone(),
            tool: self.tool.definition().id.clone(),
            arguments: self.arguments.clone(),
            is_error: self.result.is_error(),
            artifacts: self
                .result
                .artifacts
                .iter()
                .map(|artifact| artifact.kind.clone())
                .collect(),
        }
    }

    /// Returns the tool and, one by one, those that it decorates, the outermost first.
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
