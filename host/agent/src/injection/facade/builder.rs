//! How a facade is described.

use std::future::Future;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::Facade;
use super::content::{Fetch, Inside, Opening, Select, Tools};
use toolwit_core::{Arguments, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolProvider};
use toolwit_core::{Error, ErrorKind, Phase};

/// The parameter that names the category, unless another is chosen.
const CATEGORY_PARAMETER: &str = "category";

/// The category that holds every tool. It is there when some tool has no category of its own.
const ALL: &str = "all";

/// Describes a [`Facade`].
#[must_use = "a facade is made by `build`"]
pub struct FacadeBuilder {
    id: ToolId,
    name: String,
    other_names: Vec<String>,
    description: String,
    /// Each tool with the categories that it is in.
    tools: Vec<(Arc<dyn Tool>, Vec<String>)>,
    category_parameter: String,
    selection: Option<Selection>,
    usage_notes: Option<Arc<str>>,
    exclusive: bool,
}

/// How tools are made when the facade is called.
enum Selection {
    Select(Value, Box<Select>),
    Fetch(Box<Fetch>),
}

impl FacadeBuilder {
    pub(super) fn new(name: String, description: String) -> Self {
        Self {
            id: ToolId::native(&name),
            name,
            other_names: Vec::new(),
            description,
            tools: Vec::new(),
            category_parameter: CATEGORY_PARAMETER.to_owned(),
            selection: None,
            usage_notes: None,
            exclusive: false,
        }
    }

    /// Gives the facade an identity of the caller's choice, as for an interface of a plugin.
    pub fn id(mut self, id: ToolId) -> Self {
        self.id = id;
        self
    }

    /// Adds a longer name for when the ones before it are taken.
    pub fn or_named(mut self, name: impl Into<String>) -> Self {
        self.other_names.push(name.into());
        self
    }

    /// Puts a tool inside. One whose definition has a category opens with it.
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Puts tools inside. Those whose definitions have a category open with it; other facades may be among them.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        for tool in tools {
            let category = tool.definition().category.clone();
            self.put(tool, category);
        }
        self
    }

    /// Puts the methods of an object inside.
    pub fn object(self, object: &dyn ToolProvider) -> Self {
        self.tools(object.tools())
    }

    /// Puts tools inside, in a category. As soon as there is one, the facade takes the category as its argument and opens the
    /// tools of that category only. A tool may be in several; one that is in none opens with each, and all open with `all`.
    pub fn category(mut self, category: impl Into<String>, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let category = category.into();
        for tool in tools {
            self.put(tool, Some(category.clone()));
        }
        self
    }

    /// Names the parameter that takes the category; `category` unless it is set.
    pub fn category_parameter(mut self, name: impl Into<String>) -> Self {
        self.category_parameter = name.into();
        self
    }

    /// Makes the tools when the facade is called, of its arguments and the context. The arguments are checked against the
    /// schema before. What a call makes may share state; a call with other arguments makes the tools anew.
    ///
    /// The same arguments must give the same tools: a conversation that goes on in another process asks again.
    pub fn selectable<F>(mut self, schema: Value, select: F) -> Self
    where
        F: Fn(&Arguments, &ToolContext) -> Result<Vec<Arc<dyn Tool>>, ToolError> + Send + Sync + 'static,
    {
        self.selection = Some(Selection::Select(schema, Box::new(select)));
        self
    }

    /// Makes the tools when the facade is called, of the context alone: of the state of a process, of the rights of a user.
    pub fn depending<F>(self, tools: F) -> Self
    where
        F: Fn(&ToolContext) -> Result<Vec<Arc<dyn Tool>>, ToolError> + Send + Sync + 'static,
    {
        self.selectable(no_arguments(), move |_, context| tools(context))
    }

    /// Fetches the tools when the facade is called, from where they must be waited for. The context is the caller's, with the
    /// caller's tokens in it.
    pub fn fetched<F, Fut>(mut self, fetch: F) -> Self
    where
        F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Arc<dyn Tool>>, ToolError>> + Send + 'static,
    {
        self.selection = Some(Selection::Fetch(Box::new(move |_, context| Box::pin(fetch(context)))));
        self
    }

    /// Says how the tools go together. It is told once, with `<name>_context`.
    pub fn usage_notes(mut self, notes: impl Into<Arc<str>>) -> Self {
        self.usage_notes = Some(notes.into());
        self
    }

    /// Lets only the inner tools be called from the moment when they are open until the turn ends.
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Makes the facade. One without tools is allowed, and opens nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a selection beside categories, and for a schema that is none of an object.
    pub fn build(self) -> Result<Facade, Error> {
        let is_sorted = self.tools.iter().any(|(_, categories)| !categories.is_empty());
        let folded: Tools = self.tools.iter().map(|(tool, _)| tool.clone()).collect();
        let (schema, opening) = match self.selection {
            Some(_) if is_sorted => {
                let message = format!("the facade `{}` has categories and a selection", self.name);
                return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("let the selection take the category, or leave it out"));
            }
            Some(Selection::Select(schema, select)) => (schema, Opening::Selected(select)),
            Some(Selection::Fetch(fetch)) => (no_arguments(), Opening::Fetched(fetch)),
            None if is_sorted => {
                let categories = sort(&self.tools);
                let schema = category_schema(&self.category_parameter, categories.keys());
                let parameter = self.category_parameter;
                (schema, Opening::ByCategory { parameter, categories })
            }
            None => (no_arguments(), Opening::All),
        };
        let inside = Arc::new(Inside {
            name: self.name.clone(),
            folded,
            opening,
            usage_notes: self.usage_notes,
            exclusive: self.exclusive,
        });
        let mut definition = ToolDefinition::new(self.id, self.name, self.description, schema);
        definition.names.extend(self.other_names);
        let behind = inside.clone();
        let opener = NativeTool::from_definition(definition, move |arguments, context| {
            let inside = behind.clone();
            async move { inside.open(arguments, context).await }
        })?;
        Ok(Facade { opener, inside })
    }

    fn put(&mut self, tool: Arc<dyn Tool>, category: Option<String>) {
        let there = self.tools.iter_mut().find(|(there, _)| Arc::ptr_eq(there, &tool));
        match there {
            Some((_, categories)) => categories.extend(category),
            None => self.tools.push((tool, category.into_iter().collect())),
        }
    }
}

/// Sorts tools into their categories, in the order in which those were first named.
fn sort(tools: &[(Arc<dyn Tool>, Vec<String>)]) -> IndexMap<String, Tools> {
    let mut sorted: IndexMap<String, Tools> = IndexMap::new();
    for name in tools.iter().flat_map(|(_, categories)| categories) {
        sorted.entry(name.clone()).or_default();
    }
    for (tool, categories) in tools {
        for (name, shelf) in &mut sorted {
            if categories.is_empty() || categories.contains(name) {
                shelf.push(tool.clone());
            }
        }
    }
    if tools.iter().any(|(_, categories)| categories.is_empty()) {
        sorted.insert(ALL.to_owned(), tools.iter().map(|(tool, _)| tool.clone()).collect());
    }
    sorted
}

fn category_schema<'c>(parameter: &str, categories: impl Iterator<Item = &'c String>) -> Value {
    let names: Vec<_> = categories.collect();
    json!({
        "type": "object",
        "properties": {parameter: {"type": "string", "enum": names, "description": "Which of the tools to open."}},
        "required": [parameter],
        "additionalProperties": false,
    })
}

fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}})
}
