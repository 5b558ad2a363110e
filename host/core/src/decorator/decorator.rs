//! Decorators of tools.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::entity_results::EntityResults;
use super::one_shot::OneShot;
use crate::WallClock;
use crate::artifact::CaptureDecorator;
use crate::{
    ApprovalGate, Approver, Arguments, ArtifactCapture, BlackboardSink, CallAccess, Effect, EffectClass, EffectSource,
    Error, ErrorKind, Phase, Signal, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolMethods, ToolResult,
};

/// Behaviour around each call of a tool.
///
/// A decorator normally passes the context to the tool unchanged. [`ToolExt::with_decorator`] applies a decorator to a tool.
///
/// ```
/// use std::sync::Arc;
/// use toolwit_core::{Arguments, Decorator, Tool, ToolContext, ToolError, ToolExt, ToolResult};
///
/// struct Shout;
///
/// #[async_trait::async_trait]
/// impl Decorator for Shout {
///     async fn call(&self, tool: &dyn Tool, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
///         let mut result = tool.call(arguments, context).await?;
///         result.for_llm = result.for_llm.to_uppercase();
///         Ok(result)
///     }
/// }
/// # fn example(tool: Arc<dyn Tool>) -> impl Tool {
/// tool.with_decorator(Shout)
/// # }
/// ```
#[async_trait]
pub trait Decorator: Send + Sync {
    /// Calls the tool, or returns a result without calling it.
    ///
    /// # Errors
    /// As [`Tool::call`].
    async fn call(&self, tool: &dyn Tool, arguments: Arguments, context: &ToolContext)
    -> Result<ToolResult, ToolError>;

    /// Decides about a call before its approval, and returns the arguments with which the call would run. By default, returns
    /// the arguments unchanged.
    ///
    /// The person who approves the call, or another decorator, can change the arguments afterwards. If [`call`](Self::call)
    /// receives changed arguments, the decision is no longer valid, and `call` must decide about them.
    ///
    /// # Errors
    /// An error prevents the call.
    async fn prepare(
        &self,
        _tool: &dyn Tool,
        arguments: Arguments,
        _context: &ToolContext,
    ) -> Result<Arguments, ToolError> {
        Ok(arguments)
    }

    /// Returns the effect of a decorated call, given the effect of the tool. By default the decorator adds no effect.
    fn effect(&self, tool_effect: Effect) -> Effect {
        tool_effect
    }

    /// Returns the [serial group](Tool::serial_group) of the decorated tool, by default that of the inner tool `tool`.
    fn serial_group(&self, tool: &dyn Tool) -> Option<u64> {
        tool.serial_group()
    }

    /// Returns whether the decorator is a guard, such as an [`ApprovalGate`]. By default it is not.
    ///
    /// In a conversation, a guard stays on a tool that is added again without the guard, for example because its plugin
    /// file has changed. It also applies to the methods of the entities that the tool returns.
    fn is_guard(&self) -> bool {
        false
    }
}

/// A tool with a [`Decorator`], or with another description, name or id. The inner tool does not change.
#[derive(Clone)]
pub struct DecoratedTool {
    definition: ToolDefinition,
    /// The inner tool.
    tool: Arc<dyn Tool>,
    decorator: Option<Arc<dyn Decorator>>,
}

impl DecoratedTool {
    /// Applies a decorator that several tools may share.
    #[must_use]
    pub fn new(tool: Arc<dyn Tool>, decorator: Arc<dyn Decorator>) -> Self {
        Self {
            definition: tool.definition().clone(),
            tool,
            decorator: Some(decorator),
        }
    }
}

#[async_trait]
impl Tool for DecoratedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        match &self.decorator {
            Some(decorator) => decorator.call(self.tool.as_ref(), arguments, context).await,
            None => self.tool.call(arguments, context).await,
        }
    }

    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let mut access = self.tool.access(arguments, context).await;
        if let Some(decorator) = &self.decorator {
            access.effect = decorator.effect(access.effect);
        }
        access
    }

    fn inner_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    fn decorator(&self) -> Option<&Arc<dyn Decorator>> {
        self.decorator.as_ref()
    }

    fn serial_group(&self) -> Option<u64> {
        match &self.decorator {
            Some(decorator) => decorator.serial_group(self.tool.as_ref()),
            None => self.tool.serial_group(),
        }
    }

    /// Returns the serial group of the inner tool for these arguments, unless the decorator changes the group of the tool.
    fn serial_group_for(&self, arguments: &Arguments) -> Option<u64> {
        let group = self.serial_group();
        if group == self.tool.serial_group() {
            self.tool.serial_group_for(arguments)
        } else {
            group
        }
    }
}

/// Methods that decorate any tool. Each returns the decorated tool, whose [`Tool::inner_tool`] is the original tool.
///
/// ```
/// # use std::time::Duration;
/// use toolwit_core::{Tool, ToolExt};
///
/// # fn example(search: impl Tool + 'static) -> impl Tool {
/// search
///     .with_note("Use it when the catalogue has no answer.")
///     .with_timeout(Duration::from_secs(5))
///     .publish_artifacts()
/// # }
/// ```
pub trait ToolExt: Tool + Sized + 'static {
    /// Applies a decorator.
    fn with_decorator(self, decorator: impl Decorator + 'static) -> DecoratedTool {
        DecoratedTool::new(into_shared(self), Arc::new(decorator))
    }

    /// Replaces the description.
    fn with_description(self, description: impl Into<String>) -> DecoratedTool {
        let mut definition = self.definition().clone();
        definition.description = description.into();
        with_definition(self, definition)
    }

    /// Appends a sentence to the description.
    fn with_note(self, note: impl AsRef<str>) -> DecoratedTool {
        let description = &self.definition().description;
        let description = if description.is_empty() {
            note.as_ref().to_owned()
        } else {
            format!("{description} {}", note.as_ref())
        };
        self.with_description(description)
    }

    /// Changes the name and the id, so that the original and the renamed tool can be in one conversation.
    fn with_name(self, name: impl Into<String>) -> DecoratedTool {
        let name = name.into();
        let id = self.definition().id.named(&name);
        self.with_identity(id, vec![name])
    }

    /// Changes the id and the candidate names. A [`ToolSelector`](crate::ToolSelector) with the id of the inner tool still
    /// selects this tool.
    fn with_identity(self, id: ToolId, names: Vec<String>) -> DecoratedTool {
        let mut definition = self.definition().clone();
        definition.id = id;
        definition.names = names;
        with_definition(self, definition)
    }

    /// Sets the effect class, in place of the one that the sandbox proves or the author declares.
    fn with_effect(self, class: EffectClass) -> DecoratedTool {
        self.with_decorator(SetEffect(class))
    }

    /// Makes the result of the tool the answer of the run, and ends the run. A result that is an error does not end the run.
    fn return_direct(self) -> DecoratedTool {
        self.with_decorator(ReturnDirect)
    }

    /// Adds the artifacts of the tool's results to the blackboard.
    fn publish_artifacts(self) -> DecoratedTool {
        self.capture_artifacts(ArtifactCapture::to(BlackboardSink))
    }

    /// Passes the artifacts of the tool's results to a sink. The results keep the artifacts.
    fn capture_artifacts(self, capture: ArtifactCapture) -> DecoratedTool {
        self.with_decorator(CaptureDecorator::new(capture))
    }

    /// Runs the tool once per loop. A loop is one run of a conversation or an agent. Later calls return a text that refers to
    /// the history, followed by this advice.
    ///
    /// Use this decorator for a tool whose result stays in the history, such as a tool that loads instructions. Failed calls
    /// do not count. Outside a loop, every call runs.
    fn one_shot_per_loop(self, advice: impl Into<String>) -> DecoratedTool {
        self.with_decorator(OneShot::new(advice))
    }

    /// Deserialises the tool's JSON results as `T`, a type that derives `Entity`, so that the methods of the objects become
    /// tools. Use this decorator for a tool of a plugin or an MCP server, whose results are only JSON.
    ///
    /// A JSON object that deserialises as `T` becomes an entity, also if it is an item of a list. The model then reads the
    /// JSON of `T`, with the id and the tools of the entity. Other JSON does not change. A result that is an error, is pending
    /// or already has entities does not change either. The methods must not trust the fields more than they trust the tool.
    fn returns<T: ToolMethods + Serialize + DeserializeOwned>(self) -> DecoratedTool {
        self.with_decorator(EntityResults::<T>::new())
    }

    /// Requires approval of each call, with an [`ApprovalGate`].
    fn with_approval(self, approver: impl Approver + 'static) -> DecoratedTool {
        self.with_decorator(ApprovalGate::new(approver))
    }

    /// Drops a call that takes longer than `timeout`, and cancels the token of the call. Without this decorator, only the time
    /// limit of the run applies to a native tool. For a tool that works for minutes,
    /// [`LONG_RUNNING_WALL`](crate::limits::LONG_RUNNING_WALL) is the usual limit.
    fn with_timeout(self, timeout: Duration) -> DecoratedTool {
        self.with_decorator(Timeout::new(timeout))
    }

    /// Adds the signal [`Signal::Replan`] to a result that has no signal and is not an error, if `reason` returns a reason.
    fn replan_when(
        self,
        reason: impl Fn(&ToolResult, &ToolContext) -> Option<String> + Send + Sync + 'static,
    ) -> DecoratedTool {
        self.with_decorator(ReplanWhen(reason))
    }
}

impl<T: Tool + Sized + 'static> ToolExt for T {}

fn with_definition(tool: impl Tool + 'static, definition: ToolDefinition) -> DecoratedTool {
    DecoratedTool {
        definition,
        tool: into_shared(tool),
        decorator: None,
    }
}

/// Converts a tool to an `Arc`. An `Arc` is returned unchanged, because facades identify a tool by the address of its `Arc`.
fn into_shared(tool: impl Tool + 'static) -> Arc<dyn Tool> {
    match (&tool as &dyn Any).downcast_ref::<Arc<dyn Tool>>() {
        Some(shared) => shared.clone(),
        None => Arc::new(tool),
    }
}

/// A decorator with which the application sets the effect class.
struct SetEffect(EffectClass);

#[async_trait]
impl Decorator for SetEffect {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        tool.call(arguments, context).await
    }

    fn effect(&self, _tool_effect: Effect) -> Effect {
        Effect::new(self.0, EffectSource::Operator)
    }
}

/// A decorator that ends the run with the result of the tool, unless the result is an error.
struct ReturnDirect;

#[async_trait]
impl Decorator for ReturnDirect {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        Ok(tool.call(arguments, context).await?.as_answer())
    }
}

/// A decorator that drops a call that takes longer than a limit, and cancels the token of the call. The time during which a
/// nested call waits for an approver does not count.
#[derive(Clone, Copy, Debug)]
pub struct Timeout(Duration);

impl Timeout {
    /// Creates the decorator with the maximum duration of a call.
    #[must_use]
    pub fn new(max: Duration) -> Self {
        Self(max)
    }
}

#[async_trait]
impl Decorator for Timeout {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let cancel = context.cancel_token().child_token();
        // If the caller drops this future, the guard cancels the token of the call.
        let cancel_on_drop = cancel.clone().drop_guard();
        let clock = WallClock::start(WallClock::of(context));
        let context = context.clone().with_cancel_token(cancel).with_wall_clock(clock.clone());
        let result = tokio::select! {
            biased;
            result = tool.call(arguments, &context) => Some(result),
            () = clock.wait_for_limit(self.0) => None,
        };
        cancel_on_drop.disarm();
        result.unwrap_or_else(|| {
            context.cancel_token().cancel();
            let message = format!(
                "the call took longer than {:?} and was cancelled; it may have taken effect",
                self.0
            );
            let error = Error::new(ErrorKind::Timeout, Phase::Execute, message);
            Err(ToolError::Model(error.with_tool(tool.definition().name())))
        })
    }
}

/// A decorator that adds the signal [`Signal::Replan`] if a function returns a reason.
struct ReplanWhen<F>(F);

#[async_trait]
impl<F> Decorator for ReplanWhen<F>
where
    F: Fn(&ToolResult, &ToolContext) -> Option<String> + Send + Sync,
{
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let result = tool.call(arguments, context).await?;
        if result.is_error() || result.signal.is_some() {
            return Ok(result);
        }
        Ok(match (self.0)(&result, context) {
            Some(reason) => result.with_signal(Signal::replan(reason)),
            None => result,
        })
    }
}
