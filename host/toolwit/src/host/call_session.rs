//! Calls without a model, in one conversation.

use std::sync::Arc;

use super::Toolwit;
use super::find::FindError;
use toolwit_agent::injection::{
    CompletedCall, Entities, EntityTools, Injection, InjectionContext, InjectionStrategy, write_entity_tool_names,
};
use toolwit_core::{AddOutcome, Arguments, Tool, ToolContext, ToolError, ToolLookup, ToolName, ToolResult, ToolSet};
use toolwit_sandbox::Scope;

/// Calls tools by name in one conversation, without a model. Methods of the entities in a result are tools of the next calls.
///
/// ```no_run
/// use toolwit::{Arguments, ToolContext, Toolwit};
///
/// # async fn example(host: Toolwit) -> Result<(), Box<dyn std::error::Error>> {
/// let mut session = host.call_session(ToolContext::new());
/// let tool = session.find("cart_new").map_err(toolwit::Error::from)?;
/// let call = session.call(&tool, Arguments::new()).await;
/// println!("{}, and the tools {:?}", call.result?.content(), call.added);
/// # Ok(())
/// # }
/// ```
pub struct CallSession {
    host: Toolwit,
    context: ToolContext,
    /// The tools at the start.
    start: Vec<Arc<dyn Tool>>,
    tools: ToolSet,
    entities: Entities,
    calls: u32,
}

/// The outcome of a call in a [`CallSession`].
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionCall {
    /// The result, with the names of the entities' tools.
    pub result: Result<ToolResult, ToolError>,
    /// The tools that the result added.
    pub added: Vec<ToolName>,
}

impl Toolwit {
    /// Starts a conversation without a model, with all tools of the host. Every call receives the context.
    #[must_use]
    pub fn call_session(&self, context: ToolContext) -> CallSession {
        let start = self.tools(&Scope::new());
        let mut tools = ToolSet::new();
        self.interceptors.decorate(&mut tools);
        for tool in &start {
            tools.add(tool.clone());
        }
        CallSession {
            host: self.clone(),
            context,
            tools,
            start,
            entities: Entities::default(),
            calls: 0,
        }
    }
}

impl CallSession {
    /// Finds a tool by its id or name: first among the tools at the start, then among those that results added.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn find(&self, wanted: &str) -> Result<Arc<dyn Tool>, FindError> {
        let mut unknown = match self.host.find_or_explain(&self.start, wanted) {
            Ok(tool) => return Ok(tool),
            Err(error @ FindError::Ambiguous { .. }) => return Err(error),
            Err(error) => error,
        };
        let similar = match self.tools.look_up(wanted) {
            ToolLookup::Found(named) => return Ok(named.tool),
            ToolLookup::Removed(_) => Vec::new(),
            ToolLookup::Unknown(nearest) => nearest,
        };
        if let Some(named) = self.tools.iter().find(|named| named.definition.id.as_str() == wanted) {
            return Ok(named.tool.clone());
        }
        if let FindError::Unknown { nearest, .. } = &mut unknown
            && !similar.is_empty()
        {
            *nearest = similar.iter().map(ToString::to_string).collect();
        }
        Err(unknown)
    }

    /// Calls a tool, and adds the methods of the entities in its result.
    pub async fn call(&mut self, tool: &Arc<dyn Tool>, arguments: Arguments) -> SessionCall {
        let mut context = self.context.clone();
        if tool.calls_tools() {
            context = context.with_tools(Arc::new(self.tools.clone()));
        }
        match tool.call(arguments.clone(), &context).await {
            Ok(mut result) => {
                let added = self.add_entities(arguments, tool, &mut result);
                SessionCall {
                    result: Ok(result),
                    added,
                }
            }
            Err(error) => SessionCall {
                result: Err(error),
                added: Vec::new(),
            },
        }
    }

    /// Adds the methods of the entities in a result as tools. Returns the new names.
    fn add_entities(&mut self, arguments: Arguments, tool: &Arc<dyn Tool>, result: &mut ToolResult) -> Vec<ToolName> {
        let name = ToolName::sanitised(tool.definition().name());
        let Some(name) = name else { return Vec::new() };
        self.calls += 1;
        let call = CompletedCall::new(self.calls.to_string(), name, arguments, tool.clone(), result.clone());
        let context = InjectionContext::new(&[], &self.tools, &self.entities, &call, self.calls);
        let Injection { add, discovered, .. } = EntityTools.evaluate(&context);
        for discovery in &discovered {
            self.entities.record(discovery);
        }
        let added = add.into_iter().filter_map(|tool| match self.tools.add(tool) {
            AddOutcome::New(name) => Some(name),
            _ => None,
        });
        let added = added.collect();
        write_entity_tool_names(result, &discovered, &self.tools);
        added
    }
}
