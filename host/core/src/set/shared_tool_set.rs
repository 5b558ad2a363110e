//! A set of tools that several threads change while conversations use it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use serde_json::Value;

use super::named_tool::{NamedTool, ToolLookup};
use super::tool_set::ToolSet;
use crate::{
    Arguments, BackgroundTasks, Error, ErrorKind, Phase, Tool, ToolContext, ToolDialect, ToolError, ToolId, ToolName,
    ToolResult,
};

/// The id of the only call whose task a [`BackgroundTasks`] value of this module holds.
const ONLY_CALL_ID: &str = "call";

/// A set of named tools that several threads share and change. Clones share the tools.
///
/// This set is not the registry of a plugin directory: an application registers each tool. Registering a tool again replaces the
/// tool, also in the conversations that use the set. A call that has started keeps its tool. An application can also execute the
/// tools itself, and pass [`definitions`](Self::definitions) to a provider that Toolwit has no client for.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), toolwit_core::Error> {
/// use toolwit_core::{Arguments, NativeTool, NoArguments, SharedToolSet, ToolContext};
///
/// let tools = SharedToolSet::new();
/// tools.register(NativeTool::typed("ping", "Answers.", |_: NoArguments, _| async { Ok::<_, String>("pong") })?);
/// let result = tools.execute("ping", Arguments::new(), &ToolContext::new()).await;
/// assert_eq!(result.for_llm, "pong");
/// assert_eq!(tools.summaries(), ["- `ping` - Answers."]);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct SharedToolSet {
    shared: Arc<RwLock<VersionedTools>>,
}

#[derive(Default)]
struct VersionedTools {
    tools: ToolSet,
    /// The number of changes so far.
    version: u64,
}

impl SharedToolSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, or replaces the tool with the same id under its existing name. Returns the name.
    pub fn register(&self, tool: impl Tool + 'static) -> ToolName {
        let mut shared = self.write();
        shared.version += 1;
        shared.tools.add(Arc::new(tool)).name().clone()
    }

    /// Removes a tool by name. Returns whether the set had it.
    pub fn unregister(&self, name: &str) -> bool {
        let mut shared = self.write();
        let ToolLookup::Found(named) = shared.tools.look_up(name) else {
            return false;
        };
        shared.version += 1;
        shared.tools.remove(&named.definition.id).is_some()
    }

    /// Returns the tool with this name, if the set has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<NamedTool> {
        match self.read().tools.look_up(name) {
            ToolLookup::Found(named) => Some(named),
            ToolLookup::Removed(_) | ToolLookup::Unknown(_) => None,
        }
    }

    /// Calls a tool by name. If the name is unknown or the tool returns a [`ToolError`], returns an error result with the text of
    /// the error.
    pub async fn execute(&self, name: &str, arguments: Arguments, context: &ToolContext) -> ToolResult {
        let lookup = self.read().tools.look_up(name);
        let ToolLookup::Found(named) = lookup else {
            return error_result(&unknown_tool_error(name, &lookup));
        };
        let started = Instant::now();
        tracing::debug!(tool = %named.name, "a registered tool starts");
        let result = match named.tool.call(arguments, context).await {
            Ok(result) => result,
            Err(ToolError::Model(error) | ToolError::Operator(error)) => error_result(&error),
        };
        let (is_error, is_pending) = (result.is_error(), result.is_pending());
        tracing::debug!(tool = %named.name, is_error, is_pending, wall = ?started.elapsed(), "a registered tool ended");
        result
    }

    /// Calls a tool like [`execute`](Self::execute). If the call starts a background task and returns a pending result, the
    /// task continues after this method returns, and `callback` receives the late result. If the context is cancelled first,
    /// the task ends, and `callback` receives an error. For every other call, `callback` is dropped.
    pub async fn execute_with_callback(
        &self,
        name: &str,
        arguments: Arguments,
        context: &ToolContext,
        callback: impl FnOnce(ToolResult) + Send + 'static,
    ) -> ToolResult {
        let mut tasks = BackgroundTasks::new(context.cancel_token());
        let result = self
            .execute(name, arguments, &tasks.context_for_call(ONLY_CALL_ID, context))
            .await;
        if result.is_pending() && tasks.has_task(ONLY_CALL_ID) {
            let cancel = context.cancel_token().clone();
            tokio::spawn(async move {
                let late_result = tokio::select! {
                    biased;
                    late = tasks.next() => late.map(|late| late.result),
                    () = cancel.cancelled() => None,
                };
                callback(late_result.unwrap_or_else(|| ToolResult::error("the background task was cancelled")));
            });
        }
        result
    }

    /// Returns the definitions in the format of a provider, in the order of registration.
    #[must_use]
    pub fn definitions(&self, dialect: ToolDialect) -> Vec<Value> {
        self.read().tools.definitions(dialect)
    }

    /// Returns the tools in the order of registration, and the number of changes so far.
    #[must_use]
    pub fn snapshot(&self) -> (Vec<NamedTool>, u64) {
        let shared = self.read();
        (shared.tools.iter().cloned().collect(), shared.version)
    }

    /// Returns a summary of each tool: ``- `name` - description``.
    #[must_use]
    pub fn summaries(&self) -> Vec<String> {
        self.read().tools.summaries()
    }

    /// Returns the number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().tools.len()
    }

    /// Returns whether the set has no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tool with this id, if the set has it.
    #[must_use]
    pub fn by_id(&self, id: &ToolId) -> Option<NamedTool> {
        self.read().tools.by_id(id).cloned()
    }

    /// Returns the number of changes so far. While this number stays the same, the tools stay the same.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.read().version
    }

    fn read(&self) -> RwLockReadGuard<'_, VersionedTools> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, VersionedTools> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} registered tools", self.len())
    }
}

fn unknown_tool_error(name: &str, lookup: &ToolLookup) -> Error {
    let shortened: String = name.chars().take(crate::limits::NAME_BYTES_MAX).collect();
    let error = Error::new(
        ErrorKind::UnknownTool,
        Phase::Validate,
        format!("no tool is named `{shortened}`"),
    );
    match lookup {
        ToolLookup::Unknown(nearest) if !nearest.is_empty() => {
            let nearest: Vec<_> = nearest.iter().map(|name| format!("`{name}`")).collect();
            error.with_suggestion(format!("did you mean {}?", nearest.join(" or ")))
        }
        _ => error,
    }
}

fn error_result(error: &Error) -> ToolResult {
    ToolResult::error(error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;
    use crate::NativeTool;

    fn greeter(greeting: &'static str) -> NativeTool {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
        let tool = NativeTool::new("greet", greeting, schema, move |arguments, context| async move {
            let channel = context.channel().unwrap_or("nowhere").to_owned();
            let name = arguments["name"].as_str().unwrap_or_default().to_owned();
            Ok(ToolResult::text(format!("{greeting} {name} on {channel}")))
        });
        tool.unwrap()
    }

    fn arguments_for_ann() -> Arguments {
        json!({"name": "Ann"}).as_object().unwrap().clone()
    }

    // accept: 91, accept: 93
    #[tokio::test]
    async fn a_tool_runs_by_name_with_a_context_and_registering_again_replaces_it() {
        let tools = SharedToolSet::new();
        tools.register(greeter("Hello"));
        let context = ToolContext::new().with(crate::CHANNEL, "chat");
        assert_eq!(
            tools.execute("greet", arguments_for_ann(), &context).await.for_llm,
            "Hello Ann on chat"
        );
        let shared_tools = tools.clone();
        std::thread::spawn(move || shared_tools.register(greeter("Bye")))
            .join()
            .unwrap();
        assert_eq!(
            tools.execute("greet", arguments_for_ann(), &context).await.for_llm,
            "Bye Ann on chat"
        );
        assert_eq!(
            (tools.len(), tools.summaries()),
            (1, vec!["- `greet` - Bye".to_owned()])
        );
    }

    // accept: 93, attack: E7
    #[tokio::test]
    async fn an_unknown_name_and_invalid_arguments_are_error_results() {
        let tools = SharedToolSet::new();
        tools.register(greeter("Hello"));
        let context = ToolContext::new();
        let unknown = tools.execute("great", arguments_for_ann(), &context).await;
        assert!(
            unknown.is_error() && unknown.for_llm.contains("`great`"),
            "{}",
            unknown.for_llm
        );
        let invalid = tools.execute("greet", Arguments::new(), &context).await;
        assert!(
            invalid.is_error() && invalid.for_llm.contains("name"),
            "{}",
            invalid.for_llm
        );
        assert!(tools.unregister("greet") && !tools.unregister("greet"));
        assert!(tools.execute("greet", arguments_for_ann(), &context).await.is_error());
    }

    // accept: 93
    #[tokio::test]
    async fn a_callback_receives_the_late_result() {
        let tools = SharedToolSet::new();
        let report = NativeTool::new("report", "", json!({"type": "object"}), |_, context| async move {
            context
                .background_task()?
                .spawn(async { Ok(ToolResult::text("ready")) });
            Ok(ToolResult::background("started"))
        });
        tools.register(report.unwrap());
        let (sender, receiver) = oneshot::channel();
        let callback = move |result: ToolResult| sender.send(result.for_llm).unwrap();
        let context = ToolContext::new();
        let started = tools
            .execute_with_callback("report", Arguments::new(), &context, callback)
            .await;
        assert_eq!((started.for_llm.as_str(), started.is_pending()), ("started", true));
        assert_eq!(receiver.await.unwrap(), "ready");
        let result = tools.execute("report", Arguments::new(), &context).await;
        assert!(
            result.is_error(),
            "`execute` offers no background task, because it has no callback for the late result"
        );
    }
}
