//! The catalog of the tools of a principal. Calls do not change the catalog.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::Tool as WireTool;

use super::handle_method::{EntityKind, HandleMethod};
use super::meta_tools::{self, CALL_TOOL};
use crate::content::UiPages;
use crate::principal::Principal;
use crate::wire::{self, Revision};
use toolwit::injection::SEARCH_TOOLS;
use toolwit::registry::Registry;
use toolwit::strategy::RegistryTools;
use toolwit::tool::{AddOutcome, ToolId, ToolName, ToolSet};
use toolwit::{Exposure, Scope, Tool, ToolDefinition};

/// Maximum number of tools that the description of a method names as sources of handles.
const SOURCES_SHOWN_MAX: usize = 3;

/// A tool that is listed, or that a facade or a search reveals.
pub(super) struct CatalogTool {
    pub(super) name: String,
    pub(super) definition: ToolDefinition,
    pub(super) target: Target,
    /// The tool that determines the effect of a call. `None` for `search_tools` and `call_tool`.
    pub(super) tool: Option<Arc<dyn Tool>>,
}

/// The action that a call of a [`CatalogTool`] performs.
#[derive(Clone)]
pub(super) enum Target {
    /// Calls a tool of a plugin or of the host.
    Tool(ToolId),
    /// Calls a method of the entity of a handle.
    Method(Arc<HandleMethod>),
    /// Describes the tools behind a facade, whose names this variant holds.
    Facade(Vec<String>),
    /// Searches for tools.
    Search,
    /// Calls the tool whose name is an argument.
    Call,
}

/// The tools of a principal, listed and unlisted.
pub(super) struct Catalog {
    /// The packages that provide the tools.
    pub(super) packages: Registry,
    tools: HashMap<String, CatalogTool>,
    names_by_id: HashMap<ToolId, String>,
    /// The names of the methods of each type of entity.
    methods: HashMap<EntityKind, Vec<String>>,
    /// The names of the tools that return handles of each type of entity.
    sources: HashMap<EntityKind, Vec<String>>,
    listed: Vec<WireTool>,
    /// Assigns the names of the tools.
    tool_set: ToolSet,
}

impl Catalog {
    /// Creates the catalog of a principal from the metadata of its tools. No plugin is compiled.
    pub(super) fn of(principal: &Principal) -> Self {
        let packages = principal.host().registry();
        let exposure = principal.host().exposure();
        let mut catalog = Self {
            tools: HashMap::new(),
            names_by_id: HashMap::new(),
            methods: HashMap::new(),
            sources: HashMap::new(),
            listed: Vec::new(),
            tool_set: ToolSet::new(),
            packages,
        };
        for name in [SEARCH_TOOLS, CALL_TOOL].into_iter().filter_map(ToolName::parse) {
            catalog.tool_set.reserve(name);
        }
        let mut listed = catalog.add_tools(principal, exposure);
        listed.extend(catalog.add_methods(principal));
        let has_facade = catalog.move_methods_to_facades(&mut listed);
        if exposure == Exposure::Search {
            listed.clear();
            listed.push(catalog.add_meta(meta_tools::search_tools(), Target::Search));
        }
        if has_facade || exposure == Exposure::Search {
            listed.push(catalog.add_meta(meta_tools::call_tool(), Target::Call));
        }
        let ui_pages = UiPages(principal);
        let listed = listed.iter().filter_map(|name| catalog.tools.get(name)).map(|tool| {
            let listed = wire::tool(&tool.name, &tool.definition, Revision::Stateless);
            ui_pages.link(listed, &tool.definition)
        });
        catalog.listed = listed.collect();
        catalog
    }

    /// Returns the listed tools, in order.
    pub(super) fn listed(&self) -> &[WireTool] {
        &self.listed
    }

    /// Returns the tool with a name, listed or not.
    pub(super) fn tool(&self, name: &str) -> Option<&CatalogTool> {
        self.tools.get(name)
    }

    /// Returns the tool with an id. For a method, `id` is the id that is not bound to an entity.
    pub(super) fn by_id(&self, id: &str) -> Option<&CatalogTool> {
        self.tools.get(self.names_by_id.get(&ToolId::from_text(id))?)
    }

    /// Returns the names of the methods of a type of entity, or `None` if the principal may not use any of them.
    pub(super) fn methods(&self, kind: &EntityKind) -> Option<&[String]> {
        self.methods.get(kind).map(Vec::as_slice)
    }

    /// Returns the names of the tools that return handles of a type of entity.
    pub(super) fn sources(&self, kind: &EntityKind) -> &[String] {
        self.sources.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Returns the types of entities that have a method which the principal may use.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &EntityKind> {
        self.methods.keys()
    }

    /// Returns the names of tools that are similar to an unknown name.
    pub(super) fn nearest(&self, name: &str) -> Vec<String> {
        self.tool_set.nearest(name).iter().map(ToString::to_string).collect()
    }

    /// Adds the tools of the host and its plugins, and the tools behind facades. Returns the names of the tools to list.
    fn add_tools(&mut self, principal: &Principal, exposure: Exposure) -> Vec<String> {
        let tool_filter = principal.tool_filter();
        let registry = principal.host().live_registry().clone();
        let registry_tools = RegistryTools::among(registry, Scope::new(), move |id| tool_filter(id));
        let registry_tools = if exposure == Exposure::Facade {
            registry_tools.as_facades()
        } else {
            registry_tools
        };
        let native_tools = principal.host().native_tools().iter().cloned();
        let native_tools = native_tools.filter(|tool| principal.may_use(tool.definition().id.as_str()));
        let tools: Vec<_> = native_tools.chain(registry_tools.tools()).collect();
        let mut listed = Vec::new();
        for tool in &tools {
            listed.extend(self.add(tool, None));
        }
        for inner in tools
            .iter()
            .filter_map(|tool| tool.facade())
            .flat_map(|facade| facade.fixed_tools())
        {
            self.add(inner, None);
        }
        listed
    }

    /// Adds the methods of the entities of all plugins. Returns their names.
    fn add_methods(&mut self, principal: &Principal) -> Vec<String> {
        let packages = self.packages.clone();
        let mut added = Vec::new();
        for plugin in packages.plugins() {
            for entity in &plugin.inspection().entities {
                let kind = EntityKind {
                    plugin: plugin.name().to_owned(),
                    name: entity.name.clone(),
                };
                let source_ids = entity.entry_tools.iter().filter(|id| principal.may_use(id.as_str()));
                let sources: Vec<_> = source_ids.filter_map(|id| self.names_by_id.get(id).cloned()).collect();
                let usable_methods = entity
                    .methods
                    .iter()
                    .filter(|method| principal.may_use(method.id.as_str()));
                for method in usable_methods.filter_map(|method| HandleMethod::new(kind.clone(), method)) {
                    let method = Arc::new(method);
                    let shown_sources = &sources[..sources.len().min(SOURCES_SHOWN_MAX)];
                    let definition = method.describe(shown_sources);
                    let tool: Arc<dyn Tool> = method.clone();
                    let Some(name) = self.add(&tool, Some((definition, Target::Method(method)))) else {
                        continue;
                    };
                    self.methods.entry(kind.clone()).or_default().push(name.clone());
                    added.push(name);
                }
                self.sources.insert(kind, sources);
            }
        }
        added
    }

    /// Removes the methods of each facade's interface from `listed`, and adds them to the tools behind the facade. Returns
    /// whether there is a facade.
    fn move_methods_to_facades(&mut self, listed: &mut Vec<String>) -> bool {
        let facades = self
            .tools
            .values()
            .filter(|tool| matches!(tool.target, Target::Facade(_)));
        let facades: Vec<_> = facades
            .map(|tool| (tool.name.clone(), tool.definition.id.clone()))
            .collect();
        for (name, facade_id) in &facades {
            let belongs_to_facade = |method: &String| {
                let tool = self.tools.get(method);
                tool.is_some_and(|tool| {
                    matches!(tool.target, Target::Method(_))
                        && tool.definition.id.interface_of() == Some(facade_id.as_str())
                })
            };
            let (methods, others): (Vec<_>, Vec<_>) = std::mem::take(listed).into_iter().partition(belongs_to_facade);
            *listed = others;
            if let Some(CatalogTool {
                target: Target::Facade(inner),
                ..
            }) = self.tools.get_mut(name)
            {
                inner.extend(methods);
            }
        }
        !facades.is_empty()
    }

    /// Adds a tool under the name that the tool set assigns, and returns the name. Returns `None` if the tool set contains
    /// the tool already. `method` is the described definition and the target of a method, and `None` for other tools.
    fn add(&mut self, tool: &Arc<dyn Tool>, method: Option<(ToolDefinition, Target)>) -> Option<String> {
        let AddOutcome::New(name) = self.tool_set.add(tool.clone()) else {
            return None;
        };
        let (definition, target) = method.unwrap_or_else(|| {
            let definition = tool.definition().clone();
            let target = match tool.facade() {
                Some(facade) => Target::Facade(self.add_facade_tools(facade.fixed_tools())),
                None => Target::Tool(definition.id.clone()),
            };
            (definition, target)
        });
        let name = name.to_string();
        self.names_by_id.insert(definition.id.clone(), name.clone());
        let added = CatalogTool {
            name: name.clone(),
            definition,
            target,
            tool: Some(tool.clone()),
        };
        self.tools.insert(name.clone(), added);
        Some(name)
    }

    /// Adds the tools behind a facade that the catalog does not contain yet. Returns the names of all tools behind the
    /// facade.
    fn add_facade_tools(&mut self, inner: &[Arc<dyn Tool>]) -> Vec<String> {
        let name = |tool: &Arc<dyn Tool>| {
            self.add(tool, None)
                .or_else(|| self.names_by_id.get(&tool.definition().id).cloned())
        };
        inner.iter().filter_map(name).collect()
    }

    /// Adds `search_tools` or `call_tool`. Returns its name.
    fn add_meta(&mut self, definition: ToolDefinition, target: Target) -> String {
        let name = definition.name().to_owned();
        let tool = CatalogTool {
            name: name.clone(),
            definition,
            target,
            tool: None,
        };
        self.tools.insert(name.clone(), tool);
        name
    }
}
