//! Tools around tools.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::approval::Asking;
use super::one_shot::OneShot;
use crate::artifact::Capturing;
use crate::{
    Approver, Arguments, ArtifactCapture, BlackboardSink, Error, ErrorKind, Phase, Signal, Tool, ToolContext,
    ToolDefinition, ToolError, ToolResult,
};

/// What happens around each call of a tool.
///
/// The context goes on to the tool unless the decorator says otherwise. [`ToolExt::with_decorator`] puts one around a tool.
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
    /// Makes the call, or answers in the tool's place.
    ///
    /// # Errors
    /// As [`Tool::call`].
    async fn call(&self, tool: &dyn Tool, arguments: Arguments, context: &ToolContext)
    -> Result<ToolResult, ToolError>;

    /// The group in which calls must run one after the other, by default the tool's own.
    fn serial_group(&self, tool: &dyn Tool) -> Option<u64> {
        tool.serial_group()
    }
}

/// A tool inside a [`Decorator`], or under another description or name. The tool itself stays what it was.
#[derive(Clone)]
pub struct DecoratedTool {
    definition: ToolDefinition,
    tool: Arc<dyn Tool>,
    decorator: Option<Arc<dyn Decorator>>,
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

    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    fn serial_group(&self) -> Option<u64> {
        match &self.decorator {
            Some(decorator) => decorator.serial_group(self.tool.as_ref()),
            None => self.tool.serial_group(),
        }
    }
}

/// Puts decorators around any tool. Each gives a copy; the tool inside is reached with [`Tool::decorated_tool`].
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
    /// Puts a decorator around it.
    fn with_decorator(self, decorator: impl Decorator + 'static) -> DecoratedTool {
        let definition = self.definition().clone();
        DecoratedTool {
            definition,
            tool: Arc::new(self),
            decorator: Some(Arc::new(decorator)),
        }
    }

    /// Describes it in other words.
    fn with_description(self, description: impl Into<String>) -> DecoratedTool {
        let mut definition = self.definition().clone();
        definition.description = description.into();
        redefined(self, definition)
    }

    /// Adds a sentence after its description.
    fn with_note(self, note: impl AsRef<str>) -> DecoratedTool {
        let description = &self.definition().description;
        let description = match description.is_empty() {
            true => note.as_ref().to_owned(),
            false => format!("{description} {}", note.as_ref()),
        };
        self.with_description(description)
    }

    /// Gives it another name. It is another tool then: both can be in one conversation.
    fn with_name(self, name: impl Into<String>) -> DecoratedTool {
        let name = name.into();
        let mut definition = self.definition().clone();
        definition.id = definition.id.named(&name);
        definition.names = vec![name];
        redefined(self, definition)
    }

    /// Makes its result the run's answer, unless it fails.
    fn return_direct(self) -> DecoratedTool {
        self.with_decorator(ReturnDirect)
    }

    /// Puts the artifacts of its results on the blackboard.
    fn publish_artifacts(self) -> DecoratedTool {
        self.capture_artifacts(ArtifactCapture::to(BlackboardSink))
    }

    /// Hands artifacts of its results to a sink. They stay in the results.
    fn capture_artifacts(self, capture: ArtifactCapture) -> DecoratedTool {
        self.with_decorator(Capturing::new(capture))
    }

    /// Runs it once in a loop; a second call is told that the result is in the history, with this advice.
    ///
    /// For tools whose result stays in front of the model, such as one that loads instructions. A first call that failed does
    /// not count. Outside a loop every call passes.
    fn one_shot_per_loop(self, advice: impl Into<String>) -> DecoratedTool {
        self.with_decorator(OneShot::new(advice.into()))
    }

    /// Asks before each call.
    fn with_approval(self, approver: impl Approver + 'static) -> DecoratedTool {
        self.with_decorator(Asking::new(approver))
    }

    /// Ends a call that takes longer. It is told to stop, then dropped.
    fn with_timeout(self, timeout: Duration) -> DecoratedTool {
        self.with_decorator(Timeout(timeout))
    }

    /// Looks at each result that is no error, and asks for another plan where `reason` gives one.
    fn replan_when(
        self,
        reason: impl Fn(&ToolResult, &ToolContext) -> Option<String> + Send + Sync + 'static,
    ) -> DecoratedTool {
        self.with_decorator(Replanning(reason))
    }
}

impl<T: Tool + Sized + 'static> ToolExt for T {}

fn redefined(tool: impl Tool + 'static, definition: ToolDefinition) -> DecoratedTool {
    DecoratedTool {
        definition,
        tool: Arc::new(tool),
        decorator: None,
    }
}

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

struct Timeout(Duration);

#[async_trait]
impl Decorator for Timeout {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let cancel = context.cancel().child_token();
        let stop = cancel.clone().drop_guard();
        let context = context.clone().with_cancel(cancel);
        let answer = tokio::time::timeout(self.0, tool.call(arguments, &context)).await;
        stop.disarm();
        answer.unwrap_or_else(|_| {
            context.cancel().cancel();
            let message = format!(
                "the call took longer than {:?} and was ended; it may have taken effect",
                self.0
            );
            let error = Error::new(ErrorKind::Timeout, Phase::Execute, message);
            Err(ToolError::Model(error.with_tool(tool.definition().name())))
        })
    }
}

struct Replanning<F>(F);

#[async_trait]
impl<F> Decorator for Replanning<F>
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
