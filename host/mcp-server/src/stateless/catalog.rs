//! The fixed list of tools of a principal.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::Tool as WireTool;

use super::fixed_method::{EntityKind, FixedMethod};
use super::meta_tools::{self, CALL_TOOL};
use crate::content::UiPages;
use crate::principal::Principal;
use crate::wire::{self, Revision};
use toolwit::injection::SEARCH_TOOLS;
use toolwit::registry::Registry;
use toolwit::strategy::RegistryTools;
use toolwit::tool::{AddOutcome, ToolId, ToolName, ToolSet};
use toolwit::{Exposure, Scope, Tool, ToolDefinition};

/// Maximum number of tools that a description names as sources of handles.
const SOURCES_SHOWN_MAX: usize = 3;

/// A tool of the list, or one that a facade or a search reveals.
pub(super) struct FixedTool {
    pub(super) name: String,
    pub(super) definition: ToolDefinition,
    pub(super) target: Target,
    /// The tool that runs; for a method, a tool with its definition; `None` for `search_tools` and `call_tool`.
    pub(super) tool: Option<Arc<dyn Tool>>,
}

/// The action of a call.
#[derive(Clone)]
pub(super) enum Target {
    /// Calls a tool of a plugin or of the host.
    Tool(ToolId),
    /// Calls a method of the entity of a handle.
    Method(Arc<FixedMethod>),
    /// Describes the tools behind a facade. The value holds their names.
    Facade(Vec<String>),
    /// Searches for tools.
    Search,
    /// Calls a tool by name.
    Call,
}

/// The tools of a principal, and which of them are listed.
pub(super) struct Catalog {
    pub(super) packages: Registry,
    tools: HashMap<String, FixedTool>,
    names_by_id: HashMap<ToolId, String>,
    /// The names of the methods of each type of entity. A result lists the methods of its entities.
    methods: HashMap<EntityKind, Vec<String>>,
    /// The names of the tools that return handles of each type of entity.
    sources: HashMap<EntityKind, Vec<String>>,
    listed: Vec<WireTool>,
    /// The tool set that assigns the names.
    names: ToolSet,
}

impl Catalog {
    /// Lists the tools of a principal. Nothing is compiled.
    pub(super) fn of(principal: &Principal) -> Self {
        let packages = principal.host().registry();
        let exposure = principal.host().exposure();
        let mut catalog = Self {
            tools: HashMap::new(),
            names_by_id: HashMap::new(),
            methods: HashMap::new(),
            sources: HashMap::new(),
            listed: Vec::new(),
            names: ToolSet::new(),
            packages,
        };
        for name in [SEARCH_TOOLS, CALL_TOOL].into_iter().filter_map(ToolName::parse) {
            catalog.names.reserve(name);
        }
        let mut listed = catalog.add_tools(principal, exposure);
        listed.extend(catalog.add_methods(principal));
        let has_facade = catalog.fill_facades(&mut listed);
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

    /// Returns the tools of the list, in order.
    pub(super) fn listed(&self) -> &[WireTool] {
        &self.listed
    }

    /// Returns the tool of a name, listed or not.
    pub(super) fn tool(&self, name: &str) -> Option<&FixedTool> {
        self.tools.get(name)
    }

    /// Returns the tool of an id. The id of a method does not contain an entity.
    pub(super) fn by_id(&self, id: &str) -> Option<&FixedTool> {
        self.tools.get(self.names_by_id.get(&ToolId::from_text(id))?)
    }

    /// Returns the names of the methods of a type, or `None` if the principal may not use any.
    pub(super) fn methods(&self, kind: &EntityKind) -> Option<&[String]> {
        self.methods.get(kind).map(Vec::as_slice)
    }

    /// Returns the names of the tools that return handles of a type.
    pub(super) fn sources(&self, kind: &EntityKind) -> &[String] {
        self.sources.get(kind).map_or(&[], Vec::as_slice)
    }

    /// Returns the types of entities.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &EntityKind> {
        self.methods.keys()
    }

    /// Returns the names of tools that are similar to an unknown name.
    pub(super) fn nearest(&self, name: &str) -> Vec<String> {
        self.names.nearest(name).iter().map(ToString::to_string).collect()
    }

    /// Adds the tools of the host and its plugins, and those behind facades. Returns the names to list.
    fn add_tools(&mut self, principal: &Principal, exposure: Exposure) -> Vec<String> {
        let rule = principal.rule();
        let registry_tools = RegistryTools::among(principal.host().live_registry().clone(), Scope::new(), move |id| {
            rule(id)
        });
        let registry_tools = if exposure == Exposure::Facade {
            registry_tools.as_facades()
        } else {
            registry_tools
        };
        let native = principal.host().native_tools().iter().cloned();
        let native = native.filter(|tool| principal.may_use(tool.definition().id.as_str()));
        let tools: Vec<_> = native.chain(registry_tools.tools()).collect();
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
                let entry_ids = entity.entry_tools.iter().filter(|id| principal.may_use(id.as_str()));
                let sources: Vec<_> = entry_ids.filter_map(|id| self.names_by_id.get(id).cloned()).collect();
                let usable = entity
                    .methods
                    .iter()
                    .filter(|method| principal.may_use(method.id.as_str()));
                for method in usable.filter_map(|method| FixedMethod::new(kind.clone(), method)) {
                    let method = Arc::new(method);
                    let shown = &sources[..sources.len().min(SOURCES_SHOWN_MAX)];
                    let definition = method.describe(shown);
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

    /// Moves the methods of each facade's interface from the list to the facade. Returns whether there is a facade.
    fn fill_facades(&mut self, listed: &mut Vec<String>) -> bool {
        let facades = self
            .tools
            .values()
            .filter(|tool| matches!(tool.target, Target::Facade(_)));
        let facades: Vec<_> = facades
            .map(|tool| (tool.name.clone(), tool.definition.id.clone()))
            .collect();
        for (name, facade) in &facades {
            let of_facade = |method: &String| {
                let tool = self.tools.get(method);
                tool.is_some_and(|tool| {
                    matches!(tool.target, Target::Method(_))
                        && tool.definition.id.interface_of() == Some(facade.as_str())
                })
            };
            let (methods, others): (Vec<_>, Vec<_>) = std::mem::take(listed).into_iter().partition(of_facade);
            *listed = others;
            if let Some(FixedTool {
                target: Target::Facade(inner),
                ..
            }) = self.tools.get_mut(name)
            {
                inner.extend(methods);
            }
        }
        !facades.is_empty()
    }

    /// Adds a tool under the name that the set assigns, and returns the name. Returns `None` if the set has the tool
    /// already. `fixed` is the definition and the target of a method; every other tool has its own definition.
    fn add(&mut self, tool: &Arc<dyn Tool>, fixed: Option<(ToolDefinition, Target)>) -> Option<String> {
        let AddOutcome::New(name) = self.names.add(tool.clone()) else {
            return None;
        };
        let (definition, target) = fixed.unwrap_or_else(|| {
            let definition = tool.definition().clone();
            let target = match tool.facade() {
                Some(facade) => Target::Facade(self.add_facade_tools(facade.fixed_tools())),
                None => Target::Tool(definition.id.clone()),
            };
            (definition, target)
        });
        let name = name.to_string();
        self.names_by_id.insert(definition.id.clone(), name.clone());
        let added = FixedTool {
            name: name.clone(),
            definition,
            target,
            tool: Some(tool.clone()),
        };
        self.tools.insert(name.clone(), added);
        Some(name)
    }

    /// Adds the tools behind a facade, unless the catalog has them already. Returns the names of all tools behind the
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
        let tool = FixedTool {
            name: name.clone(),
            definition,
            target,
            tool: None,
        };
        self.tools.insert(name.clone(), tool);
        name
    }
}
