//! The builder of a facade.

use std::future::Future;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::Facade;
use super::content::{FacadeContents, FetchFunction, RevealRule, SelectFunction, Tools};
use toolwit_core::{
    Arguments, EffectClass, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolProvider,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// Default name of the parameter that takes the category.
const CATEGORY_PARAMETER: &str = "category";

/// The name of the category that contains every tool. A facade with categories has this category if at least one of its tools
/// has no category.
const ALL_CATEGORY: &str = "all";

/// Builds a [`Facade`].
#[derive(Clone)]
#[must_use = "call `build` to create the facade"]
pub struct FacadeBuilder {
    id: ToolId,
    name: String,
    /// Alternatives to `name`, most preferred first.
    fallback_names: Vec<String>,
    description: String,
    /// Category of the facade itself, for an outer facade.
    own_category: Option<String>,
    /// Each tool with its categories.
    tools: Vec<(Arc<dyn Tool>, Vec<String>)>,
    category_parameter: String,
    tools_function: Option<ToolsFunction>,
    usage_notes: Option<Arc<str>>,
    is_exclusive: bool,
}

/// A function that creates or fetches inner tools when the facade is called.
#[derive(Clone)]
enum ToolsFunction {
    /// The schema of the arguments, and the function that takes them.
    Select(Value, Arc<SelectFunction>),
    /// The function that fetches the tools.
    Fetch(Arc<FetchFunction>),
}

impl Facade {
    /// Starts building a facade. The model decides by the description when to call it.
    pub fn builder(name: impl Into<String>, description: impl Into<String>) -> FacadeBuilder {
        FacadeBuilder::new(name.into(), description.into())
    }

    /// Creates a facade for the methods of an object.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidProvider`] for an object without methods; otherwise as [`FacadeBuilder::build`].
    pub fn of_object(
        name: impl Into<String>,
        description: impl Into<String>,
        object: &dyn ToolProvider,
    ) -> Result<Self, Error> {
        let name = name.into();
        let tools = object.tools();
        if tools.is_empty() {
            let message = format!("the object `{}` of the facade `{name}` has no methods", object.prefix());
            return Err(Error::new(ErrorKind::InvalidProvider, Phase::Registry, message)
                .with_suggestion("add a method to the object, or remove the facade"));
        }
        Self::builder(name, description).tools(tools).build()
    }

    /// Creates a facade for the methods of an object, or returns `None` if [`of_object`](Self::of_object) fails.
    #[must_use]
    pub fn of_object_or_none(
        name: impl Into<String>,
        description: impl Into<String>,
        object: &dyn ToolProvider,
    ) -> Option<Self> {
        Self::of_object(name, description, object).ok()
    }
}

impl FacadeBuilder {
    fn new(name: String, description: String) -> Self {
        Self {
            id: ToolId::native(&name),
            name,
            fallback_names: Vec::new(),
            description,
            own_category: None,
            tools: Vec::new(),
            category_parameter: CATEGORY_PARAMETER.to_owned(),
            tools_function: None,
            usage_notes: None,
            is_exclusive: false,
        }
    }

    /// Sets the id of the facade, for example that of a plugin's interface. By default it is the id of a native tool with the
    /// facade's name.
    pub fn id(mut self, id: ToolId) -> Self {
        self.id = id;
        self
    }

    /// Sets the category under which an outer facade lists this one.
    pub fn own_category(mut self, category: impl Into<String>) -> Self {
        self.own_category = Some(category.into());
        self
    }

    /// Adds an alternative name, used if the names before it are taken.
    pub fn fallback_name(mut self, name: impl Into<String>) -> Self {
        self.fallback_names.push(name.into());
        self
    }

    /// Adds an inner tool, in the category of its definition if that has one.
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds inner tools, each in the category of its definition if that has one. Inner tools can be facades.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        for tool in tools {
            let category = tool.definition().category.clone();
            self.insert(tool, category);
        }
        self
    }

    /// Adds the methods of an object as inner tools.
    pub fn object(self, object: &dyn ToolProvider) -> Self {
        self.tools(object.tools())
    }

    /// Adds inner tools to a category.
    ///
    /// A facade with categories takes the category as its argument and reveals the tools of that category. A tool can be in
    /// several categories. If a tool has no category, it is revealed with each category, and the facade has the further
    /// category `all`, which reveals all tools.
    pub fn category(mut self, category: impl Into<String>, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let category = category.into();
        for tool in tools {
            self.insert(tool, Some(category.clone()));
        }
        self
    }

    /// Sets the name of the parameter that takes the category. The default is `category`.
    pub fn category_parameter(mut self, name: impl Into<String>) -> Self {
        self.category_parameter = name.into();
        self
    }

    /// Sets the schema of the facade's arguments, and a function that creates tools from these arguments and the context when
    /// the facade is called. The function replaces an earlier one, also one that [`fetch_with`](Self::fetch_with) set.
    ///
    /// The function runs for each call, with arguments that match the schema. When a conversation is resumed, it runs again with
    /// the recorded arguments, which are not checked again. It must return the same tools for the same arguments. The tools of
    /// one call may share state.
    pub fn select_with<F>(mut self, schema: Value, select: F) -> Self
    where
        F: Fn(&Arguments, &ToolContext) -> Result<Vec<Arc<dyn Tool>>, ToolError> + Send + Sync + 'static,
    {
        self.tools_function = Some(ToolsFunction::Select(schema, Arc::new(select)));
        self
    }

    /// Sets a function that creates tools from the context when the facade is called, for example from the rights of a
    /// user.
    pub fn tools_from_context<F>(self, tools: F) -> Self
    where
        F: Fn(&ToolContext) -> Result<Vec<Arc<dyn Tool>>, ToolError> + Send + Sync + 'static,
    {
        self.select_with(no_arguments_schema(), move |_, context| tools(context))
    }

    /// Sets an asynchronous function that fetches tools when the facade is called. It receives the caller's context, which can
    /// hold access tokens. Fetched tools are not restored when a conversation is resumed: the model must call the facade again.
    pub fn fetch_with<F, Fut>(mut self, fetch: F) -> Self
    where
        F: Fn(ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Arc<dyn Tool>>, ToolError>> + Send + 'static,
    {
        self.tools_function = Some(ToolsFunction::Fetch(Arc::new(move |_, context| {
            Box::pin(fetch(context))
        })));
        self
    }

    /// Sets notes on how to combine the tools. The model reads them with the tool `<name>_context`, which is added with the
    /// inner tools.
    pub fn usage_notes(mut self, notes: impl Into<Arc<str>>) -> Self {
        self.usage_notes = Some(notes.into());
        self
    }

    /// Makes the facade exclusive: after it is called, only the facade, its inner tools, the tools that their results add, and
    /// tools of the host can be called until the turn ends. The other tools stay declared and are locked, since hiding them
    /// would invalidate the provider's prompt cache. The model leaves the facade by answering, as the result of the facade and
    /// of each call of a locked tool explains.
    pub fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// Creates the facade. A facade without tools is valid and reveals nothing; a warning with its name is logged.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the facade has both categories and a function that creates or fetches tools, or if
    /// the schema of its arguments is not of type `object`.
    pub fn build(self) -> Result<Facade, Error> {
        let builder = self.clone();
        if self.tools.is_empty() && self.tools_function.is_none() {
            tracing::warn!(facade = self.name, "the facade has no inner tools");
        }
        let has_categories = self.tools.iter().any(|(_, categories)| !categories.is_empty());
        let fixed_tools: Tools = self.tools.iter().map(|(tool, _)| tool.clone()).collect();
        let (schema, rule) = match self.tools_function {
            Some(_) if has_categories => {
                let message = format!(
                    "the facade `{}` has categories and a function that creates its tools",
                    self.name
                );
                return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("let the function take the category as an argument, or remove either the function or the categories"));
            }
            Some(ToolsFunction::Select(schema, select)) => (schema, RevealRule::Selected(select)),
            Some(ToolsFunction::Fetch(fetch)) => (no_arguments_schema(), RevealRule::Fetched(fetch)),
            None if has_categories => {
                let categories = group_by_category(&self.tools);
                let schema = category_schema(&self.category_parameter, categories.keys());
                let parameter = self.category_parameter;
                (schema, RevealRule::ByCategory { parameter, categories })
            }
            None => (no_arguments_schema(), RevealRule::All),
        };
        let contents = Arc::new(FacadeContents {
            name: self.name.clone(),
            fixed_tools,
            rule,
            usage_notes: self.usage_notes,
            is_exclusive: self.is_exclusive,
        });
        let mut definition = ToolDefinition::new(self.id, self.name, self.description, schema);
        definition.names.extend(self.fallback_names);
        definition.category = self.own_category;
        definition.effect = Some(EffectClass::Read);
        let contents_for_opener = contents.clone();
        let opener = NativeTool::from_definition(definition, move |arguments, context| {
            let contents = contents_for_opener.clone();
            async move { contents.open(arguments, context).await }
        })?;
        Ok(Facade {
            opener,
            contents,
            builder,
        })
    }

    fn insert(&mut self, tool: Arc<dyn Tool>, category: Option<String>) {
        let existing = self.tools.iter_mut().find(|(inner, _)| Arc::ptr_eq(inner, &tool));
        match existing {
            Some((_, categories)) => categories.extend(category),
            None => self.tools.push((tool, category.into_iter().collect())),
        }
    }
}

/// Groups tools by category, in the order in which the categories were added. A tool without a category is in each category. If
/// there is such a tool, the category `all` has all tools.
fn group_by_category(tools: &[(Arc<dyn Tool>, Vec<String>)]) -> IndexMap<String, Tools> {
    let mut tools_by_category: IndexMap<String, Tools> = IndexMap::new();
    for name in tools.iter().flat_map(|(_, categories)| categories) {
        tools_by_category.entry(name.clone()).or_default();
    }
    for (tool, categories) in tools {
        for (name, members) in &mut tools_by_category {
            if categories.is_empty() || categories.contains(name) {
                members.push(tool.clone());
            }
        }
    }
    if tools.iter().any(|(_, categories)| categories.is_empty()) {
        tools_by_category.insert(
            ALL_CATEGORY.to_owned(),
            tools.iter().map(|(tool, _)| tool.clone()).collect(),
        );
    }
    tools_by_category
}

fn category_schema<'c>(parameter: &str, categories: impl Iterator<Item = &'c String>) -> Value {
    let names: Vec<_> = categories.collect();
    json!({
        "type": "object",
        "properties": {parameter: {"type": "string", "enum": names, "description": "Category of the tools to open."}},
        "required": [parameter],
        "additionalProperties": false,
    })
}

fn no_arguments_schema() -> Value {
    json!({"type": "object", "properties": {}})
}
