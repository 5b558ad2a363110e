//! A conversation without a model.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::no_model::NoModel;
use super::serial_groups::SerialGroups;
use crate::conversation::ConversationBuilder;
use crate::injection::InjectionStrategy;
use crate::run::{SingleCall, SingleCallStart, begin_silent_turn};
use crate::state::ConversationState;
use toolwit_core::{
    Arguments, Caller, Effect, Error, ErrorKind, Phase, ToolContext, ToolDefinition, ToolId, ToolLookup, ToolName,
    ToolResult,
};

/// A conversation without a model. Its calls come from outside, such as from an MCP client.
///
/// Otherwise, a session works like a [`Conversation`](crate::Conversation): strategies lock, add and remove tools,
/// results return entities whose methods become tools, and facades reveal their tools. Several calls can run at the same
/// time. Calls on one live object run one after the other, in call order. Each call is a turn of its own. A call returns
/// its result when it ends; there are no late results.
///
/// ```
/// use toolwit_agent::{Conversation, ToolSession};
/// use toolwit_core::{Arguments, NativeTool, ToolContext, ToolResult};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hello = NativeTool::new("hello", "Greets.", serde_json::json!({"type": "object"}), |_, _| async {
///     Ok(ToolResult::text("hello"))
/// })?;
/// let session = ToolSession::begin(Conversation::builder().tool(hello)).await?;
/// assert_eq!(session.tools().await[0].name.as_str(), "hello");
/// let answer = session.call("hello", Arguments::new(), &ToolContext::new()).await?;
/// assert_eq!(answer.result.content(), "hello");
/// # Ok(()) }
/// ```
pub struct ToolSession {
    conversation: Mutex<ConversationState>,
    context: ToolContext,
    serial_groups: SerialGroups,
}

/// A tool of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionTool {
    /// The name under which the tool is called.
    pub name: ToolName,
    /// The definition of the tool.
    pub definition: Arc<ToolDefinition>,
}

/// The answer to a call of a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionAnswer {
    /// The id of the tool that was called; `None` if the call did not run because the tool is locked.
    pub tool: Option<ToolId>,
    /// The result, with the names of the tools that it added. If the call could not run to its end, this is an error
    /// result. If the tool is locked, this is guidance on how to unlock the tool.
    pub result: ToolResult,
    /// Whether the call changed the declared tools.
    pub has_changed_tools: bool,
    /// The kind of the error, if the call could not run to its end.
    pub error_kind: Option<ErrorKind>,
}

impl ToolSession {
    /// Builds a conversation without a model. The model of the builder is ignored. Resolves the roles of the conversation,
    /// and applies the changes that the strategies request at the start of a turn.
    ///
    /// # Errors
    /// As [`ConversationBuilder::build`], and if the tools of a role cannot be resolved.
    pub async fn begin(builder: ConversationBuilder) -> Result<Self, Error> {
        let mut state = builder.model(NoModel).build()?.into_state();
        let context = state.context.clone();
        begin_silent_turn(&mut state, &context).await?;
        Ok(Self {
            conversation: Mutex::new(state),
            context,
            serial_groups: SerialGroups::default(),
        })
    }

    /// Returns the declared tools, in the order of their declaration.
    pub async fn tools(&self) -> Vec<SessionTool> {
        let conversation = self.conversation.lock().await;
        let declared = conversation.toolbox.declared().iter();
        declared
            .map(|tool| SessionTool {
                name: tool.name.clone(),
                definition: tool.definition.clone(),
            })
            .collect()
    }

    /// Returns the declared tools, in the order of their declaration. Each tool has the effect that a call without
    /// arguments would have now. A tool that was removed has the default effect.
    pub async fn tools_with_effects(&self) -> Vec<(SessionTool, Effect)> {
        let (declared, approvals) = {
            let conversation = self.conversation.lock().await;
            let declared = conversation.toolbox.declared().iter().map(|tool| {
                let tool = SessionTool {
                    name: tool.name.clone(),
                    definition: tool.definition.clone(),
                };
                let callable = conversation.toolbox.callable().by_id(&tool.definition.id);
                (tool, callable.map(|callable| callable.tool.clone()))
            });
            (declared.collect::<Vec<_>>(), conversation.approvals.clone())
        };
        let no_arguments = Arguments::new();
        let mut tools = Vec::with_capacity(declared.len());
        for (session_tool, tool) in declared {
            let effect = match (&tool, &approvals) {
                (Some(tool), Some(approvals)) => approvals.access(&**tool, &no_arguments, &self.context).await.effect,
                (Some(tool), None) => tool.access(&no_arguments, &self.context).await.effect,
                (None, _) => Effect::default(),
            };
            tools.push((session_tool, effect));
        }
        tools
    }

    /// Returns the effect that a call would have now. `None` if no tool with this name can be called.
    pub async fn effect(&self, name: &str, arguments: &Arguments, context: &ToolContext) -> Option<Effect> {
        let (tool, approvals) = {
            let conversation = self.conversation.lock().await;
            let ToolLookup::Found(named) = conversation.toolbox.look_up(name) else {
                return None;
            };
            (named.tool, conversation.approvals.clone())
        };
        let context = self.context.merged_with(context);
        let access = match approvals {
            Some(approvals) => approvals.access(&*tool, arguments, &context).await,
            None => tool.access(arguments, &context).await,
        };
        Some(access.effect)
    }

    /// Returns the callable tool of this name, declared or hidden.
    pub async fn tool(&self, name: &str) -> Option<SessionTool> {
        match self.conversation.lock().await.toolbox.look_up(name) {
            ToolLookup::Found(named) => Some(SessionTool {
                name: named.name,
                definition: named.definition,
            }),
            _ => None,
        }
    }

    /// Returns the callable tool of this id, declared or hidden.
    pub async fn tool_by_id(&self, id: &ToolId) -> Option<SessionTool> {
        let conversation = self.conversation.lock().await;
        let named = conversation.toolbox.callable().by_id(id)?;
        Some(SessionTool {
            name: named.name.clone(),
            definition: named.definition.clone(),
        })
    }

    /// Returns the tool of this id. If the session does not have the tool, a strategy can restore it, as in a resumed
    /// conversation. A restored tool is declared.
    pub async fn find_or_restore(&self, id: &ToolId) -> Option<SessionTool> {
        if let Some(tool) = self.tool_by_id(id).await {
            return Some(tool);
        }
        {
            let mut conversation = self.conversation.lock().await;
            let tool = conversation.strategy.restore(id)?;
            conversation.toolbox.add_configured(tool);
            conversation.toolbox.start_turn();
        }
        self.tool_by_id(id).await
    }

    /// Resolves the roles again, and applies the changes that the strategies request at the start of a turn, such as for
    /// changed files in a plugin directory. Returns whether the declared tools changed.
    ///
    /// # Errors
    /// If the tools of a role cannot be resolved.
    pub async fn refresh(&self) -> Result<bool, Error> {
        let mut conversation = self.conversation.lock().await;
        let has_changed = begin_silent_turn(&mut conversation, &self.context).await?;
        Ok(has_changed)
    }

    /// Calls a tool by its name. The values of `context` take precedence over those of the session. If the context has another
    /// [`Caller`] than the previous call, the tools that were made for that caller are made again first.
    ///
    /// If the cancellation token of the context is cancelled, the call ends. The result is then an error, unless the tool
    /// still returns a result within its grace period.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`](toolwit_core::ErrorKind::UnknownTool) or
    /// [`ErrorKind::ToolUnavailable`](toolwit_core::ErrorKind::ToolUnavailable) if no tool has the name, the tool is
    /// inside a closed facade, or it was removed; as [`refresh`](Self::refresh) for another caller.
    pub async fn call(&self, name: &str, arguments: Arguments, context: &ToolContext) -> Result<SessionAnswer, Error> {
        let context = self.context.merged_with(context);
        let mut conversation = self.conversation.lock().await;
        let has_other_tools =
            Caller::of(&context) != conversation.caller && begin_silent_turn(&mut conversation, &context).await?;
        // The limit of time ended the change.
        if Caller::of(&context) != conversation.caller {
            let message = "the tools of this caller were not made in time";
            return Err(Error::new(ErrorKind::Cancelled, Phase::Load, message));
        }
        let started = SingleCall::start(&mut conversation, name, arguments, &context);
        drop(conversation);
        let call = match started {
            SingleCallStart::Ready(call) => call,
            SingleCallStart::Refused(error) => return Err(error),
            SingleCallStart::Locked(guidance) => {
                return Ok(SessionAnswer {
                    tool: None,
                    result: ToolResult::text(guidance),
                    has_changed_tools: has_other_tools,
                    error_kind: None,
                });
            }
        };
        let lock = call.serial_group().map(|group| self.serial_groups.enter(group));
        let ended = call.run(lock).await;
        let answer = ended.record(&mut *self.conversation.lock().await);
        Ok(SessionAnswer {
            tool: Some(answer.tool),
            result: answer.result,
            has_changed_tools: answer.has_changed_tools || has_other_tools,
            error_kind: answer.error_kind,
        })
    }
}
