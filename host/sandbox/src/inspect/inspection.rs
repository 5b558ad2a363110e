//! The inspection of a component: its digest, imports and tool definitions, read from its bytes. Nothing is compiled, and no
//! guest code runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::annotations::Annotations;
use super::check::{self, CheckedComponent};
use super::compile_cost::CompileWork;
use super::docs;
use super::dynamic_export;
use super::dynamic_tools_state::DynamicToolsState;
use super::effect_tag;
use super::entry_tools::entry_tools;
use super::footprint::Footprint;
use super::imports::{self, Import, WasiVersions};
use super::package_docs;
use super::profile::Profile;
use super::reflect::{ADDED_BY_TOOLCHAIN, reflect};
use super::wit_text;
use crate::values::dynamic_export::DiscoveredTool;
use crate::values::types::{Function, FunctionKind, Resource, Shape, SkippedExport};
use toolwit_core::Error;
use toolwit_core::text::snake_case;
use toolwit_core::{ToolDefinition, ToolId};

/// A WebAssembly component that has been inspected but not compiled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The size of the component, in bytes.
    pub size_bytes: u64,
    /// The engine configuration that the component requires.
    pub profile: Profile,
    /// The definitions of the functions that are tools from the start, and of the discovered tools.
    pub tools: Vec<ToolDefinition>,
    /// The exported resources. Their methods become tools when a call returns an instance.
    pub entities: Vec<EntityType>,
    /// The exports that are not tools, with the reasons.
    pub skipped: Vec<SkippedExport>,
    /// The imports.
    pub imports: Vec<Import>,
    /// The problem of the WIT file next to the component: the file is unreadable, invalid, or does not describe every function.
    pub wit_problem: Option<String>,
    /// The core instances, memories and tables that one instance allocates before it runs.
    pub(crate) footprint: Footprint,
    /// The estimated work to compile the component.
    pub(crate) compile_work: CompileWork,
    /// For each of `tools`, the index in `shape.functions` of the function that runs it. A discovered tool is run by the
    /// function that calls dynamic tools.
    pub(crate) tool_functions: Vec<usize>,
    /// The exports, with their types.
    pub(crate) shape: Arc<Shape>,
}

/// A type of entities: a resource that a component exports.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EntityType {
    /// The name of the resource in tool names: `customer`.
    pub name: String,
    /// The doc comment of the resource in WIT.
    pub description: Option<String>,
    /// The definitions of the methods, except the method that returns the id. Each definition has the entity's id as a parameter.
    pub methods: Vec<ToolDefinition>,
    /// The tools with which a conversation obtains the first instance. Their results contain an instance, or an entity whose
    /// methods lead to an instance.
    pub entry_tools: Vec<ToolId>,
}

/// The context of a component in its package: the plugin's name, and the WIT file next to the component.
#[derive(Clone, Copy, Debug)]
pub struct PackageContext<'a> {
    /// The plugin's name, the first part of its tools' ids.
    pub name: &'a str,
    /// The WIT file next to the component, which is read for its docs.
    pub adjacent_wit: Option<&'a AdjacentWit>,
}

/// The WIT file next to a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdjacentWit {
    /// Its text.
    Text(String),
    /// The reason why it cannot be read.
    Unreadable(String),
}

impl Inspection {
    /// Inspects a component. Blocks for milliseconds per megabyte, so call it on a thread that may block.
    ///
    /// # Errors
    /// [`ErrorKind::MalformedComponent`](toolwit_core::ErrorKind::MalformedComponent) or
    /// [`ErrorKind::Unsupported`](toolwit_core::ErrorKind::Unsupported), with the reason in one line. Unknown imports are not
    /// an error here; see [`Inspection::require_loadable`].
    pub fn from_bytes(bytes: &[u8], context: PackageContext<'_>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, context, &Annotations::default())
    }

    /// Inspects a component, and applies the annotations of its package.
    ///
    /// # Errors
    /// Those of [`Inspection::from_bytes`], and [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) for an
    /// annotation of an export, a resource or a method that the component does not have.
    pub fn from_bytes_with(
        bytes: &[u8],
        context: PackageContext<'_>,
        annotations: &Annotations,
    ) -> Result<Self, Error> {
        let checked = check::check(bytes)?;
        let (wit, mut wit_problem) = match wit_with_docs(&checked, context) {
            Ok(wit) => (wit, None),
            Err(problem) => (None, Some(problem)),
        };
        let mut shape = reflect(&checked, wit.as_ref());
        if let Some(wit) = &wit {
            docs::apply(&mut shape, wit);
            if !checked.has_embedded_wit() {
                wit_problem = docs::mismatch(&shape, wit);
            }
        }
        let sections = checked.custom_sections.iter();
        for (_, section) in sections.filter(|(name, _)| *name == package_docs::SECTION) {
            package_docs::apply(&mut shape, section);
        }
        effect_tag::apply(&mut shape);
        annotations.apply(&mut shape)?;
        let digest = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let imports = imports::list(&checked);
        let inspection = Self {
            size_bytes: bytes.len() as u64,
            // Only the engine of `Profile::Concurrent` has the interfaces of WASI 0.3, also those without async functions.
            profile: if imports::needs_wasi3(&imports) {
                Profile::Concurrent
            } else {
                checked.profile
            },
            imports,
            wit_problem,
            footprint: checked.footprint,
            compile_work: checked.compile_work,
            shape: Arc::new(shape),
            ..Self::empty(digest)
        };
        Ok(inspection.with_definitions(context.name))
    }

    /// Creates the inspection of a component without imports and exports.
    pub(super) fn empty(digest: String) -> Self {
        Self {
            digest,
            size_bytes: 0,
            profile: Profile::Plain,
            tools: Vec::new(),
            entities: Vec::new(),
            skipped: Vec::new(),
            imports: Vec::new(),
            wit_problem: None,
            footprint: Footprint::default(),
            compile_work: CompileWork::default(),
            tool_functions: Vec::new(),
            shape: Arc::default(),
        }
    }

    /// Generates the schemas and the definitions from the shape, for a plugin of this name.
    pub(super) fn with_definitions(mut self, plugin: &str) -> Self {
        Arc::make_mut(&mut self.shape).generate_schemas();
        let shape = &*self.shape;
        let is_tool =
            |function: &Function| !matches!(function.kind, FunctionKind::Method(_)) && !function.kind.is_for_host();
        let functions = shape.functions.iter().enumerate();
        let functions = functions.filter(|(_, function)| is_tool(function));
        let exported = functions.map(|(index, function)| (define(shape, function, plugin), index));
        let discovered = dynamic_export::definitions(shape, plugin);
        (self.tools, self.tool_functions) = exported.chain(discovered).unzip();
        let resources = shape.resources.iter().zip(entry_tools(shape));
        self.entities = resources
            .map(|(resource, entry_tools)| entity_type(shape, resource, &entry_tools, plugin))
            .collect();
        self.skipped.clone_from(&shape.skipped);
        self
    }

    /// Returns whether the component has dynamic tools, and whether they have been discovered.
    #[must_use]
    pub fn dynamic_tools_state(&self) -> DynamicToolsState {
        match &self.shape.dynamic {
            None => DynamicToolsState::None,
            Some(dynamic) if dynamic.discovered_tools.is_none() => DynamicToolsState::Undiscovered,
            Some(_) => DynamicToolsState::Discovered,
        }
    }

    /// Returns the interface by which the component lists and calls its dynamic tools, such as `act:tools/tool-provider@0.1.0`.
    /// `None` for a component without dynamic tools.
    #[must_use]
    pub fn contract(&self) -> Option<&str> {
        let call = self.shape.dynamic.as_ref()?.contract.call_index();
        self.shape.functions.get(call)?.interface.as_deref()
    }

    /// Returns the exports that are not tools, except those that a toolchain added.
    pub fn skipped_exports_of_author(&self) -> impl Iterator<Item = &SkippedExport> {
        self.skipped
            .iter()
            .filter(|skipped| skipped.reason != ADDED_BY_TOOLCHAIN)
    }

    /// Returns whether the component exports `toolwit:plugin/interceptor`, so that it can wrap the calls of other tools.
    #[must_use]
    pub fn is_interceptor(&self) -> bool {
        self.shape.interceptor.is_some()
    }

    /// Returns the discovered tools as JSON for [`Inspection::with_discovered_tools`]. `None` if the component has no dynamic
    /// tools, or has not been queried for them.
    #[must_use]
    pub fn discovered_tools(&self) -> Option<String> {
        let tools = self.shape.dynamic.as_ref()?.discovered_tools.as_ref()?;
        serde_json::to_string(tools).ok()
    }

    /// Sets the discovered tools from the JSON that [`Inspection::discovered_tools`] returned, for a plugin of this name. Returns
    /// the inspection unchanged if the JSON is invalid, or if the component has no dynamic tools.
    #[must_use]
    pub fn with_discovered_tools(self, json: &str, plugin: &str) -> Self {
        match serde_json::from_str(json) {
            Ok(tools) if !self.dynamic_tools_state().is_none() => self.with_tools(tools, plugin),
            _ => self,
        }
    }

    /// Returns the inspection with these discovered tools, for a plugin of this name.
    pub(crate) fn with_tools(&self, tools: Vec<DiscoveredTool>, plugin: &str) -> Self {
        let mut inspection = self.clone();
        if let Some(dynamic) = &mut Arc::make_mut(&mut inspection.shape).dynamic {
            dynamic.discovered_tools = Some(tools);
        }
        inspection.with_definitions(plugin)
    }

    /// Refuses a component with an import that the host does not implement, or does not offer with these versions of WASI.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownImport`](toolwit_core::ErrorKind::UnknownImport). The message names refused imports.
    pub fn require_loadable(&self, wasi: WasiVersions) -> Result<(), Error> {
        imports::require_supported(&self.imports, wasi)
    }
}

/// Prints the WIT of a component with its embedded docs, except the packages of WASI. `None` if the component is not valid, or
/// if its WIT is empty, too long or cannot be printed. Blocks for milliseconds per megabyte.
#[must_use]
pub fn component_wit(bytes: &[u8]) -> Option<String> {
    let checked = check::check(bytes).ok()?;
    let context = PackageContext {
        name: "",
        adjacent_wit: None,
    };
    let with_docs = wit_with_docs(&checked, context).ok().flatten();
    wit_text::print(&with_docs.or_else(|| docs::decode_package_or_component(bytes))?)
}

/// Returns the WIT of a component with its docs, from the component or from the file next to it. `None` if neither has valid WIT,
/// or if the component is invalid.
pub(super) fn wit_of(bytes: &[u8], context: PackageContext<'_>) -> Option<wit_parser::Resolve> {
    wit_with_docs(&check::check(bytes).ok()?, context).ok()?
}

/// Returns WIT with docs: from the WIT sections of the component, otherwise from the WIT text that a bindings macro embedded,
/// otherwise from the file next to the component. `Ok(None)` if the component embeds no valid WIT and the file does not exist. The
/// error is the reason why the file cannot be used.
fn wit_with_docs(
    checked: &CheckedComponent<'_>,
    context: PackageContext<'_>,
) -> Result<Option<wit_parser::Resolve>, String> {
    let embedded =
        docs::decode_packages(checked.wit_sections()).or_else(|| docs::parse_embedded_texts(&checked.wit_sources));
    match (embedded, context.adjacent_wit) {
        (Some(wit), _) => Ok(Some(wit)),
        (None, None) => Ok(None),
        (None, Some(AdjacentWit::Text(text))) => docs::parse_wit(text).map(Some),
        (None, Some(AdjacentWit::Unreadable(reason))) => Err(reason.clone()),
    }
}

impl<'a> CheckedComponent<'a> {
    /// Returns the embedded WIT packages.
    fn wit_sections(&self) -> impl Iterator<Item = &'a [u8]> {
        let sections = self.custom_sections.iter();
        let sections = sections.filter(|(name, _)| *name == toolwit_sections::WIT_SECTION);
        sections.map(|(_, bytes)| *bytes)
    }

    /// Returns whether the component embeds WIT, which may be invalid.
    fn has_embedded_wit(&self) -> bool {
        self.wit_sections().next().is_some() || !self.wit_sources.is_empty()
    }
}

fn entity_type(shape: &Shape, resource: &Resource, entry_tools: &BTreeSet<usize>, plugin: &str) -> EntityType {
    EntityType {
        name: resource.json_name(),
        description: resource.docs.clone(),
        methods: resource
            .methods
            .iter()
            .filter(|method| resource.id_method != Some(**method))
            .map(|method| define_shared_method(&shape.functions[*method], resource, plugin))
            .collect(),
        entry_tools: entry_tools
            .iter()
            .map(|index| tool_id(&shape.functions[*index], plugin))
            .collect(),
    }
}

fn tool_id(function: &Function, plugin: &str) -> ToolId {
    ToolId::plugin(plugin, function.interface.as_deref(), &function.export)
}

/// Creates the tool definition of a function.
pub(crate) fn define(shape: &Shape, function: &Function, plugin: &str) -> ToolDefinition {
    let id = tool_id(function, plugin);
    let name = match function.kind {
        FunctionKind::Command => snake_case(plugin),
        FunctionKind::Static(index) | FunctionKind::Constructor(index) | FunctionKind::Method(index) => {
            format!(
                "{}_{}",
                shape.resources[index.0].json_name(),
                snake_case(&function.name)
            )
        }
        FunctionKind::Free | FunctionKind::Dynamic | FunctionKind::Interceptor => snake_case(&function.name),
    };
    let description = function
        .docs
        .clone()
        .unwrap_or_else(|| wit_text::description_without_docs(function, &name, plugin));
    let mut definition = ToolDefinition::new(id, name.clone(), description, serde_json::Value::Null);
    definition.input_schema = function.input_schema.clone();
    definition.output_schema = function.output_schema.clone();
    definition.effect = function.effect;
    let plugin = snake_case(plugin);
    match function.interface_name().map(snake_case) {
        Some(interface) => definition
            .with_fallback_name(format!("{interface}_{name}"))
            .with_fallback_name(format!("{plugin}_{interface}_{name}")),
        None => definition.with_fallback_name(format!("{plugin}_{name}")),
    }
}

/// Creates the tool definition of a method that all entities of a type share. The entity's id is a parameter.
pub(crate) fn define_shared_method(method: &Function, resource: &Resource, plugin: &str) -> ToolDefinition {
    let entity = resource.json_name();
    let id = tool_id(method, plugin);
    let name = format!("{entity}_{}", snake_case(&method.name));
    let description = method
        .docs
        .clone()
        .unwrap_or_else(|| wit_text::description_without_docs(method, &name, plugin));
    let mut schema = serde_json::Value::clone(&method.input_schema);
    let parameter = id_parameter(method, resource);
    if let Some(fields) = schema.as_object_mut() {
        let mut properties = serde_json::Map::new();
        let id = serde_json::json!({"type": "string", "description": format!("The id of the `{entity}`.")});
        properties.insert(parameter.clone(), id);
        if let Some(serde_json::Value::Object(method_properties)) = fields.remove("properties") {
            properties.extend(method_properties);
        }
        let mut required = vec![serde_json::Value::String(parameter)];
        if let Some(serde_json::Value::Array(method_required)) = fields.remove("required") {
            required.extend(method_required);
        }
        fields.remove("additionalProperties");
        fields.insert("properties".to_owned(), properties.into());
        fields.insert("required".to_owned(), required.into());
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    let mut definition = ToolDefinition::new(id, name.clone(), description, schema);
    definition.output_schema = method.output_schema.clone();
    definition.effect = method.effect;
    definition.with_fallback_name(format!("{}_{name}", snake_case(plugin)))
}

/// Returns the name of the parameter for the entity's id: `customer_id`, or `the_customer_id` if the method already has a
/// parameter `customer_id`.
pub(crate) fn id_parameter(method: &Function, resource: &Resource) -> String {
    let mut name = format!("{}_id", resource.json_name());
    while method.params.iter().any(|param| param.label.json == name) {
        name.insert_str(0, "the_");
    }
    name
}
