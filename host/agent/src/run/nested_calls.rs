//! Calls that a tool makes to other tools of the conversation.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::child_calls::ParentCall;
use super::run_state::RunState;
use crate::injection::{CallGate, CallLog, ConversationView, InjectionStrategy, Lineage, StrategyChain};
use toolwit_core::{
    Arguments, Effect, Error, ErrorKind, NamedTool, Phase, Tool, ToolCaller, ToolContext, ToolError, ToolId,
    ToolResult, ToolSet,
};

/// Maximum length of an id in an event or an error, in characters. The calling tool can request an id of any length.
const ID_CHARS_MAX: usize = 300;

/// The [`ToolCaller`] that one call of a tool receives, here called the parent. It calls the tools that existed when the call
/// of the model began, and the tools that the strategies can restore. So a plugin can call a registry tool that its grant
/// names, even if the model has not found this tool.
pub(super) struct NestedCaller {
    scope: Arc<NestedScope>,
    parent: Arc<ParentCall>,
}

/// The data that all nested calls inside one call of the model share.
struct NestedScope {
    /// The tools that existed when the call of the model began.
    tools: Arc<ToolSet>,
    /// The ids of the tools that a strategy gates.
    gated_ids: HashSet<ToolId>,
    /// The calls that had ended when the call of the model began.
    ended_calls: Arc<CallLog>,
    lineage: Arc<Lineage>,
    turn: u32,
    strategy: StrategyChain,
}

impl NestedCaller {
    /// Creates the caller for a call of the model. It does not call tools that a strategy gates. Strategies observe only the
    /// calls of the model, so only the model may call gated tools.
    pub(super) fn new(run: &RunState<'_>, parent: Arc<ParentCall>) -> Self {
        let toolbox = &run.conversation.toolbox;
        let tools = toolbox.callable().clone();
        let gated = tools.iter().filter(|tool| run.gate(tool) != CallGate::Ungated);
        let gated_ids = gated.map(|tool| tool.definition.id.clone()).collect();
        let scope = NestedScope {
            tools,
            gated_ids,
            ended_calls: toolbox.calls().clone(),
            lineage: toolbox.lineage().clone(),
            turn: run.conversation.turns,
            strategy: run.conversation.strategy.clone(),
        };
        Self {
            scope: Arc::new(scope),
            parent,
        }
    }
}

impl NestedScope {
    /// Returns the tool with this id; `None` if it does not exist or a strategy gates it.
    fn find_callable(&self, id: &str, context: &ToolContext) -> Option<Arc<dyn Tool>> {
        let id = ToolId::from_text(id);
        match self.tools.by_id(&id) {
            Some(named) => (!self.gated_ids.contains(&id)).then(|| named.tool.clone()),
            None => self.restore(&id, context),
        }
    }

    /// Creates a tool that was never in the conversation, if a strategy can restore the tool and no strategy gates it. The
    /// tool gets the decorators that it would have in the conversation.
    fn restore(&self, id: &ToolId, context: &ToolContext) -> Option<Arc<dyn Tool>> {
        if self.tools.was_added_or_excluded(id) {
            return None;
        }
        let tool = self.strategy.restore(id).filter(|tool| !self.tools.is_excluded(tool))?;
        let tool = self.tools.decorated(tool);
        let named = NamedTool {
            name: self.tools.names_after_adding(std::slice::from_ref(&tool)).pop()?,
            definition: Arc::new(tool.definition().clone()),
            tool,
        };
        let view = ConversationView::new(&[], &self.tools);
        let view = view.with_calls(&self.ended_calls).with_lineage(&self.lineage);
        // A nested call belongs to no iteration, so the strategies receive the number of the first iteration.
        let view = view.with_context(context).with_position(self.turn, 1);
        let gate = self.strategy.gate(&named, &view);
        (gate == CallGate::Ungated).then_some(named.tool)
    }
}

/// Returns the id that a tool requested, truncated to [`ID_CHARS_MAX`] characters.
fn shortened_id(id: &str) -> ToolId {
    let shortened: String = id.chars().take(ID_CHARS_MAX).collect();
    ToolId::from_text(&shortened)
}

fn unknown_tool_error(id: &str) -> ToolError {
    let message = format!("there is no tool `{}`", shortened_id(id));
    ToolError::Model(Error::new(ErrorKind::UnknownTool, Phase::Validate, message))
}

#[async_trait]
impl ToolCaller for NestedCaller {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let child = self.parent.next_child(&shortened_id(id));
        let mut context = self.parent.context_for(&child, context);
        if context.tools().is_some() {
            context = context.with_tools(Arc::new(Self {
                scope: self.scope.clone(),
                parent: child.clone(),
            }));
        }
        match self.scope.find_callable(id, &context) {
            Some(tool) => self.parent.run_child(&child, &*tool, arguments, context).await?,
            None => {
                self.parent.announce_unknown(&child);
                Err(unknown_tool_error(id))
            }
        }
    }

    async fn effect_of(&self, id: &str, context: &ToolContext) -> Option<Effect> {
        let tool = self.scope.find_callable(id, context)?;
        Some(context.access(&*tool, &Arguments::new()).await.effect)
    }
}
