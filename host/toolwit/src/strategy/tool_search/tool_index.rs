//! Search indexes of tools that are not in packages: native tools, facades and the tools of servers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lock;
use toolwit_agent::{FixedTools, ToolSource};
use toolwit_core::limits::FACADE_DEPTH_MAX;
use toolwit_core::{Caller, Tool, ToolContext, ToolId};
use toolwit_registry::{Catalog, Document, EmbeddingModel};

/// Separates the ids of facades and of an inner tool in the id of a document: `native#garden>native#water_roses`.
const PATH_SEPARATOR: char = '>';

/// Returns the id of the tool that a document describes, without the ids of the facades around the tool.
pub(super) fn without_path(id: &str) -> &str {
    id.rsplit(PATH_SEPARATOR).next().unwrap_or(id)
}

/// Tools with a search index. The index also has the inner tools of facades; a search that finds one of them returns its
/// facade.
#[derive(Default)]
pub(super) struct ToolIndex {
    pub(super) catalog: Catalog,
    /// The tools that are not inside a facade, with their names.
    tools: Vec<(String, Arc<dyn Tool>)>,
    /// The positions in `tools`, by the id of the tool.
    positions: HashMap<String, usize>,
    /// The descriptions of the inner tools of facades, by the id of their document.
    inner_descriptions: HashMap<String, String>,
}

impl ToolIndex {
    /// Indexes tools under the given names. With an embedding model, the index also has an embedding of each tool.
    pub(super) fn of<N: Into<String>>(
        tools: impl IntoIterator<Item = (N, Arc<dyn Tool>)>,
        embedding_model: Option<&Arc<dyn EmbeddingModel>>,
    ) -> Self {
        let mut index = Self {
            catalog: embedding_model
                .cloned()
                .into_iter()
                .fold(Catalog::new(), Catalog::with_embedding_model),
            ..Self::default()
        };
        for (name, tool) in tools {
            let definition = tool.definition();
            let mut document = Document::of_definition(definition);
            document.name = name.into();
            let id = definition.id.clone();
            let mut documents = vec![document.clone()];
            index.add_inner_tools(&id, &id, &tool, &mut documents);
            index.catalog.put(id.as_str(), documents);
            index.positions.insert(id.to_string(), index.tools.len());
            index.tools.push((document.name, tool));
        }
        index
    }

    /// Adds documents for the inner tools if `tool` is a facade, up to [`FACADE_DEPTH_MAX`] levels deep. `path` is the id of
    /// the facade's document. A search that finds an inner tool returns the outermost facade, which leads to it.
    fn add_inner_tools(
        &mut self,
        outermost: &ToolId,
        path: &ToolId,
        tool: &Arc<dyn Tool>,
        documents: &mut Vec<Document>,
    ) {
        let is_too_deep = path.as_str().matches(PATH_SEPARATOR).count() >= FACADE_DEPTH_MAX;
        let facade = tool.facade().filter(|_| !is_too_deep);
        for inner in facade.into_iter().flat_map(|facade| facade.fixed_tools()) {
            let definition = inner.definition();
            // The path makes the id unique if the same tool is in several facades.
            let id = ToolId::from_text(&format!("{path}{PATH_SEPARATOR}{}", definition.id));
            let mut document = Document::of_definition(definition).with_entry_tools([outermost.as_str()]);
            document.id = id.to_string();
            self.inner_descriptions
                .insert(document.id.clone(), definition.description.clone());
            documents.push(document);
            self.add_inner_tools(outermost, &id, inner, documents);
        }
    }

    /// Returns an indexed tool that is not inside a facade.
    pub(super) fn tool(&self, id: &str) -> Option<&Arc<dyn Tool>> {
        let (_, tool) = self.tools.get(*self.positions.get(id)?)?;
        Some(tool)
    }

    /// Returns the description of a tool or of an inner tool, by the id of its document.
    pub(super) fn description(&self, id: &str) -> Option<&String> {
        let description = self.tool(id).map(|tool| &tool.definition().description);
        description.or_else(|| self.inner_descriptions.get(id))
    }

    /// Returns whether the index has exactly these tools under these names.
    pub(super) fn has_same_tools(&self, tools: &[(&str, Arc<dyn Tool>)]) -> bool {
        let mut pairs = self.tools.iter().zip(tools);
        self.tools.len() == tools.len()
            && pairs.all(|((indexed_name, indexed), (name, tool))| indexed_name == name && Arc::ptr_eq(indexed, tool))
    }
}

/// A source of tools, with an index of the tools that it returned last.
pub(super) struct SourceIndex {
    pub(super) source: Arc<dyn ToolSource>,
    /// The index, and the caller for whom the source returned the tools; `None` for a source that has not been queried.
    index: Mutex<(Option<Caller>, Arc<ToolIndex>)>,
    embedding_model: Option<Arc<dyn EmbeddingModel>>,
}

impl SourceIndex {
    /// Creates the index of a source that has not been queried.
    pub(super) fn new(source: Arc<dyn ToolSource>, embedding_model: Option<Arc<dyn EmbeddingModel>>) -> Self {
        Self {
            source,
            index: Mutex::default(),
            embedding_model,
        }
    }

    /// Creates the index of a fixed list of tools.
    pub(super) fn fixed(tools: Vec<Arc<dyn Tool>>, embedding_model: Option<Arc<dyn EmbeddingModel>>) -> Self {
        let index = ToolIndex::of(with_preferred_names(&tools), embedding_model.as_ref());
        Self {
            source: Arc::new(FixedTools::new("native", tools)),
            index: Mutex::new((None, Arc::new(index))),
            embedding_model,
        }
    }

    /// Queries the source and returns the index of its tools. If the source fails or takes longer than `wall_max`,
    /// returns the index of the tools that it returned last for this caller.
    pub(super) async fn index(&self, context: &ToolContext, wall_max: Duration) -> Arc<ToolIndex> {
        let (name, caller) = (self.source.name(), Some(Caller::of(context)));
        match tokio::time::timeout(wall_max, self.source.tools(context)).await {
            Ok(Ok(tools)) => {
                let tools: Vec<_> = with_preferred_names(&tools).collect();
                let mut state = lock(&self.index);
                let (listed_for, index) = &mut *state;
                let named_tools: Vec<_> = tools.iter().map(|(name, tool)| (name.as_str(), tool.clone())).collect();
                if !index.has_same_tools(&named_tools) {
                    *index = Arc::new(ToolIndex::of(tools, self.embedding_model.as_ref()));
                }
                listed_for.clone_from(&caller);
            }
            Ok(Err(error)) => tracing::warn!(source = name, %error, "a source of tools cannot be searched"),
            Err(_) => {
                tracing::warn!(source = name, limit = ?wall_max, "a source of tools takes too long to be searched")
            }
        }
        let mut state = lock(&self.index);
        if state.0 != caller {
            *state = (caller, Arc::default());
        }
        state.1.clone()
    }

    /// Returns the source if it is still starting.
    pub(super) fn starting_source(&self, context: &ToolContext) -> Option<Arc<dyn ToolSource>> {
        self.source.is_starting(context).then(|| self.source.clone())
    }

    /// Returns the tool with an id among those that the source returned last.
    pub(super) fn tool(&self, id: &str) -> Option<Arc<dyn Tool>> {
        lock(&self.index).1.tool(id).cloned()
    }
}

/// Pairs tools with their preferred names.
fn with_preferred_names(tools: &[Arc<dyn Tool>]) -> impl Iterator<Item = (String, Arc<dyn Tool>)> {
    tools
        .iter()
        .map(|tool| (tool.definition().name().to_owned(), tool.clone()))
}
