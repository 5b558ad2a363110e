//! A conversation without a model: tools are called by name, and returned entities add their tools.

use std::sync::Arc;

use serde_json::Value;
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::{Plugin, Scope};
use toolwit::tool::{ToolLookup, name_available_tools};
use toolwit::{Error, Tool, ToolContext, ToolResult, ToolSet};

/// One conversation over some plugins.
pub struct Conversation {
    /// The tools, including those of entities.
    pub tools: ToolSet,
    /// The context of each call.
    pub context: ToolContext,
    scope: Scope,
}

impl Conversation {
    /// Starts a conversation over the given plugins.
    #[must_use]
    pub fn over(plugins: &[&Arc<Plugin>]) -> Self {
        let scope = Scope::new();
        let mut tools = ToolSet::new();
        for tool in plugins.iter().flat_map(|plugin| plugin.tools(&scope)) {
            tools.add(tool);
        }
        Self {
            tools,
            context: ToolContext::new(),
            scope,
        }
    }

    /// Sets the limits of every following call.
    #[must_use]
    pub fn limited(mut self, limits: LimitOverrides) -> Self {
        self.context = self.context.with_extension(limits);
        self
    }

    /// Finds a tool by the name that the model would use.
    #[must_use]
    pub fn tool(&self, name: &str) -> Arc<dyn Tool> {
        match self.tools.look_up(name) {
            ToolLookup::Found(named) => named.tool,
            ToolLookup::Removed(_) => panic!("`{name}` was removed"),
            ToolLookup::Unknown(_) => panic!("there is no `{name}` among {:?}", self.names()),
        }
    }

    /// Lists the names of all tools.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    /// Calls a tool by name, and adds the tools of returned entities.
    ///
    /// # Errors
    /// If the call could not be made.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Result<ToolResult, Error> {
        let mut result = self.tool(name).call(object(arguments), &self.context).await?;
        for provider in &result.providers {
            for tool in provider.tools() {
                self.tools.add(tool);
            }
        }
        name_available_tools(&mut result, |provider| {
            let tools = provider.tools().into_iter();
            let named = tools.filter_map(|tool| self.tools.by_id(&tool.definition().id));
            named.map(|tool| tool.name.clone()).collect()
        });
        Ok(result)
    }

    /// Calls a tool that must succeed, and returns its value.
    pub async fn value(&mut self, name: &str, arguments: Value) -> Value {
        match self.call(name, arguments).await {
            Ok(result) if !result.is_error() => result.value.expect("a plugin's result has a value"),
            Ok(result) => panic!("`{name}` failed: {}", result.for_llm),
            Err(error) => panic!("`{name}` could not be called: {error}: {error:#?}"),
        }
    }

    /// Calls a tool that must fail, and returns the error.
    pub async fn error(&mut self, name: &str, arguments: Value) -> Error {
        match self.call(name, arguments).await {
            Ok(result) => panic!("`{name}` succeeded: {result:?}"),
            Err(error) => error,
        }
    }

    /// Ends the conversation.
    pub fn end(self) {
        drop(self.tools);
        drop(self.scope);
    }
}

/// Converts a JSON object to arguments.
fn object(arguments: Value) -> toolwit::Arguments {
    match arguments {
        Value::Object(map) => map,
        other => panic!("arguments are an object, not {other}"),
    }
}
