//! Calls of tools by a program instead of a model, in one conversation.

use std::sync::Arc;

use futures::future::join_all;

use super::Toolwit;
use super::find::FindError;
use toolwit_agent::ToolSource;
use toolwit_agent::injection::{
    CompletedCall, Entities, EntityTools, Injection, InjectionContext, InjectionStrategy, number_objects,
    write_entity_tool_names,
};
use toolwit_core::{
    AddOutcome, Arguments, Error, Tool, ToolContext, ToolError, ToolId, ToolLookup, ToolName, ToolResult, ToolSet,
};
use toolwit_sandbox::Scope;

/// A conversation without a model: the program finds tools by name and calls them. After a call returns entities, their
/// methods are tools of the session.
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
    /// The tools that the host had when the session started, and the tools that [`CallSession::add_sources`] added.
    listed_tools: Vec<Arc<dyn Tool>>,
    /// The listed tools and the tools that calls added.
    tools: ToolSet,
    entities: Entities,
    call_count: u32,
    /// The sources whose tools [`CallSession::add_sources`] added.
    added_sources: Vec<Arc<dyn ToolSource>>,
}

/// A source that cannot be reached, so that the session does not have its tools.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnreachableSource {
    /// The name of the source.
    pub name: String,
    /// The reason why it cannot be reached.
    pub error: Error,
}

/// The outcome of a call in a [`CallSession`].
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionCall {
    /// The result. If it contains entities, it lists the names of their tools.
    pub result: Result<ToolResult, ToolError>,
    /// The names of the tools that the call added to the session: methods of entities in the result, and new tools of
    /// sources.
    pub added: Vec<ToolName>,
}

impl Toolwit {
    /// Starts a conversation without a model, with the native tools and all tools of plugins. Every call receives the
    /// context. To add the tools of shared sources, use [`CallSession::add_sources`].
    #[must_use]
    pub fn call_session(&self, context: ToolContext) -> CallSession {
        let listed_tools = self.tools(&Scope::new());
        let mut tools = ToolSet::new();
        self.interceptors.decorate_set(&mut tools);
        for tool in &listed_tools {
            tools.add(tool.clone());
        }
        CallSession {
            host: self.clone(),
            context: self.interceptors.add_to_context(context),
            tools,
            listed_tools,
            entities: Entities::default(),
            call_count: 0,
            added_sources: Vec::new(),
        }
    }
}

impl CallSession {
    /// Finds a tool by its id or name: first among the tools of the host and of sources, then among those that calls
    /// added.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn find(&self, wanted: &str) -> Result<Arc<dyn Tool>, FindError> {
        let mut find_error = match self.host.find_or_explain(&self.listed_tools, wanted) {
            Ok(tool) => return Ok(tool),
            Err(error @ FindError::Ambiguous { .. }) => return Err(error),
            Err(error) => error,
        };
        let similar_names = match self.tools.look_up(wanted) {
            ToolLookup::Found(named) => return Ok(named.tool),
            ToolLookup::Removed(_) => Vec::new(),
            ToolLookup::Unknown(nearest) => nearest,
        };
        if let Some(named) = self.tools.iter().find(|named| named.definition.id.as_str() == wanted) {
            return Ok(named.tool.clone());
        }
        if let FindError::Unknown { nearest, .. } = &mut find_error
            && !similar_names.is_empty()
        {
            *nearest = similar_names.iter().map(ToString::to_string).collect();
        }
        Err(find_error)
    }

    /// Contacts the shared sources of the host, such as servers, whose tools the session does not have yet, and adds
    /// their tools. `wanted` is the name or id of the tool that the caller needs. If it is the id of a tool of an MCP
    /// server, only this server is contacted. Returns the sources that could not be reached.
    pub async fn add_sources(&mut self, wanted: &str) -> Vec<UnreachableSource> {
        let owner = ToolId::from_text(wanted).owner().to_owned();
        let is_added =
            |source: &&Arc<dyn ToolSource>| self.added_sources.iter().any(|added| added.name() == source.name());
        let new_sources = self.host.sources().iter().filter(|source| !is_added(source));
        let owner_sources: Vec<_> = new_sources
            .clone()
            .filter(|source| owner == format!("mcp:{}", source.name()))
            .cloned()
            .collect();
        let contacted_sources: Vec<_> = if owner_sources.is_empty() {
            new_sources.cloned().collect()
        } else {
            owner_sources
        };
        let context = &self.context;
        let answers = join_all(contacted_sources.iter().map(async |source| source.tools(context).await)).await;
        let mut unreachable = Vec::new();
        for (source, tools) in contacted_sources.into_iter().zip(answers) {
            match tools {
                Ok(tools) => {
                    for tool in tools {
                        let tool = self.host.interceptors.decorate_tool(tool);
                        self.tools.add(tool.clone());
                        self.listed_tools.push(tool);
                    }
                    self.added_sources.push(source);
                }
                Err(error) => unreachable.push(UnreachableSource {
                    name: source.name().to_owned(),
                    error,
                }),
            }
        }
        unreachable
    }

    /// Adds tools that appeared in the added sources during a call, without contacting the sources. Returns the names of
    /// the new tools.
    fn add_new_source_tools(&mut self) -> Vec<ToolName> {
        let sources = self.added_sources.iter();
        let cached_tools: Vec<_> = sources
            .filter_map(|source| source.cached_tools(&self.context))
            .flatten()
            .collect();
        let is_new = |tool: &Arc<dyn Tool>| self.tools.by_id(&tool.definition().id).is_none();
        let new_tools: Vec<_> = cached_tools.into_iter().filter(is_new).collect();
        let added = new_tools.into_iter().filter_map(|tool| match self.tools.add(tool) {
            AddOutcome::New(name) => Some(name),
            _ => None,
        });
        added.collect()
    }

    /// Calls a tool. Adds the methods of the entities in its result, and tools that sources added during the call.
    pub async fn call(&mut self, tool: &Arc<dyn Tool>, arguments: Arguments) -> SessionCall {
        let mut context = self.context.clone();
        if tool.calls_tools() {
            context = context.with_tools(Arc::new(self.tools.clone()));
        }
        match tool.call(arguments.clone(), &context).await {
            Ok(mut result) => {
                let mut added = self.add_entity_methods(arguments, tool, &mut result);
                added.extend(self.add_new_source_tools());
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

    /// Adds the methods of the entities in a result as tools, and writes the names of these tools into the result.
    /// Returns the names of those tools that are new.
    fn add_entity_methods(
        &mut self,
        arguments: Arguments,
        tool: &Arc<dyn Tool>,
        result: &mut ToolResult,
    ) -> Vec<ToolName> {
        let name = ToolName::sanitised(tool.definition().name());
        let Some(name) = name else { return Vec::new() };
        number_objects(result, &mut self.entities, 0, |_| false);
        self.call_count += 1;
        let call = CompletedCall::new(
            self.call_count.to_string(),
            name,
            arguments,
            tool.clone(),
            result.clone(),
        );
        let context = InjectionContext::new(&[], &self.tools, &self.entities, &call, self.call_count);
        let Injection { add, discovered, .. } = EntityTools.evaluate(&context);
        for discovery in &discovered {
            self.entities.record(discovery);
        }
        let added = add.into_iter().filter_map(|tool| match self.tools.add(tool) {
            AddOutcome::New(name) => Some(name),
            _ => None,
        });
        let added = added.collect();
        write_entity_tool_names(result, &discovered, &self.entities, &self.tools);
        added
    }
}
