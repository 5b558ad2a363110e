//! What a component is and offers, read from its bytes. Nothing is compiled and no guest code runs.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::annotations::Annotations;
use super::check::{self, Checked};
use super::docs;
use super::dynamic_export;
use super::dynamic_tools::DynamicTools;
use super::footprint::Footprint;
use super::imports::{self, Import};
use super::package_docs;
use super::reflect::reflect;
use super::wit_text;
use crate::inspect::profile::Profile;
use crate::values::dynamic_export::DiscoveredTool;
use crate::values::types::{Function, FunctionKind, Resource, Shape, SkippedExport};
use toolwit_core::Error;
use toolwit_core::text::snake_case;
use toolwit_core::{ToolDefinition, ToolId};

/// All that is known about a component without running it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// SHA-256 of the bytes, in hex.
    pub digest: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Which engine it needs.
    pub profile: Profile,
    /// The functions that are tools from the start.
    pub tools: Vec<ToolDefinition>,
    /// The resources whose methods become tools when a call returns one.
    pub entities: Vec<EntityType>,
    /// Exports that are no tools, and why.
    pub skipped: Vec<SkippedExport>,
    /// What it imports.
    pub imports: Vec<Import>,
    /// What an instance takes before it runs.
    pub(crate) footprint: Footprint,
    /// Which function of the shape each of `tools` is.
    pub(crate) tool_functions: Vec<usize>,
    pub(crate) shape: Arc<Shape>,
}

/// What a component is, apart from what it exports.
#[derive(Clone, Debug, Serialize, serde::Deserialize)]
pub(crate) struct Facts {
    pub(crate) digest: String,
    pub(crate) size_bytes: u64,
    pub(crate) profile: Profile,
    pub(crate) imports: Vec<Import>,
    pub(crate) footprint: Footprint,
}

/// A resource that a component exports.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct EntityType {
    /// Its name in tool names: `customer`.
    pub name: String,
    /// What the author wrote about it.
    pub description: Option<String>,
    /// Its methods, in the form that takes the entity's id as a parameter.
    pub methods: Vec<ToolDefinition>,
}

/// Who a component is to be, and what lies beside it.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The plugin's name, the first part of its tools' ids.
    pub name: &'a str,
    /// WIT text from a file beside the component, for docs.
    pub adjacent_wit: Option<&'a str>,
}

impl Inspection {
    /// Reads a component. It takes milliseconds a megabyte: run it where blocking is allowed.
    ///
    /// # Errors
    /// [`ErrorKind::MalformedComponent`](toolwit_core::ErrorKind::MalformedComponent) or
    /// [`ErrorKind::Unsupported`](toolwit_core::ErrorKind::Unsupported), with one line that says why. An import that the
    /// host does not offer is no error here; see [`Inspection::require_loadable`].
    pub fn from_bytes(bytes: &[u8], origin: Origin<'_>) -> Result<Self, Error> {
        Self::from_bytes_with(bytes, origin, &Annotations::default())
    }

    /// Reads a component, and puts what its package says about it in the place of its own docs.
    ///
    /// # Errors
    /// Those of [`Inspection::from_bytes`], and [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) for an
    /// annotation of something that the component lacks.
    pub fn from_bytes_with(bytes: &[u8], origin: Origin<'_>, annotations: &Annotations) -> Result<Self, Error> {
        let checked = check::check(bytes)?;
        let wit = wit_with_docs(&checked, origin);
        let mut shape = reflect(&checked, wit.as_ref());
        if let Some(wit) = &wit {
            docs::apply(&mut shape, wit);
        }
        for (_, section) in checked
            .custom_sections
            .iter()
            .filter(|(name, _)| *name == package_docs::SECTION)
        {
            package_docs::apply(&mut shape, section);
        }
        annotations.apply(&mut shape)?;
        let digest = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let facts = Facts {
            digest,
            size_bytes: bytes.len() as u64,
            profile: checked.profile,
            imports: imports::list(&checked),
            footprint: checked.footprint,
        };
        Ok(Self::assemble(facts, shape, origin.name))
    }

    /// Makes definitions of a shape, for a plugin of this name.
    pub(crate) fn assemble(facts: Facts, mut shape: Shape, plugin: &str) -> Self {
        shape.make_schemas();
        let is_tool = |function: &Function| !matches!(function.kind, FunctionKind::Method(_) | FunctionKind::Dynamic);
        let functions = shape.functions.iter().enumerate();
        let functions = functions.filter(|(_, function)| is_tool(function));
        let own = functions.map(|(at, function)| (define(&shape, function, plugin), at));
        let (tools, tool_functions) = own.chain(dynamic_export::definitions(&shape, plugin)).unzip();
        Self {
            digest: facts.digest,
            size_bytes: facts.size_bytes,
            profile: facts.profile,
            tools,
            entities: shape
                .resources
                .iter()
                .map(|resource| entity_type(&shape, resource, plugin))
                .collect(),
            skipped: shape.skipped.clone(),
            imports: facts.imports,
            footprint: facts.footprint,
            tool_functions,
            shape: Arc::new(shape),
        }
    }

    /// Returns whether the component has dynamic tools, and whether they have been discovered.
    #[must_use]
    pub fn dynamic_tools(&self) -> DynamicTools {
        match &self.shape.dynamic {
            None => DynamicTools::None,
            Some(dynamic) if dynamic.discovered.is_none() => DynamicTools::Undiscovered,
            Some(_) => DynamicTools::Discovered,
        }
    }

    /// Writes what the component told of its tools as text for [`Inspection::with_discovered_tools`]; none where nothing was.
    #[must_use]
    pub fn discovered_tools(&self) -> Option<String> {
        let told = self.shape.dynamic.as_ref()?.discovered.as_ref()?;
        serde_json::to_string(told).ok()
    }

    /// Adds the tools that the component told before, as [`Inspection::discovered_tools`] wrote them, for a plugin of this name. Text that
    /// is none of that adds nothing.
    #[must_use]
    pub fn with_discovered_tools(self, told: &str, plugin: &str) -> Self {
        match serde_json::from_str(told) {
            Ok(told) if !self.dynamic_tools().is_none() => self.telling(told, plugin),
            _ => self,
        }
    }

    /// Adds the tools that the component told, for a plugin of this name.
    pub(crate) fn telling(&self, told: Vec<DiscoveredTool>, plugin: &str) -> Self {
        let mut shape = Shape::clone(&self.shape);
        if let Some(dynamic) = &mut shape.dynamic {
            dynamic.discovered = Some(told);
        }
        Self::assemble(self.facts(), shape, plugin)
    }

    pub(crate) fn facts(&self) -> Facts {
        Facts {
            digest: self.digest.clone(),
            size_bytes: self.size_bytes,
            profile: self.profile,
            imports: self.imports.clone(),
            footprint: self.footprint,
        }
    }

    /// Refuses a component that needs an import which the host does not offer.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownImport`](toolwit_core::ErrorKind::UnknownImport), naming the imports.
    pub fn require_loadable(&self) -> Result<(), Error> {
        imports::require_known(&self.imports)
    }
}

/// Prints a component's WIT, with docs where it carries them. It takes milliseconds a megabyte.
#[must_use]
pub fn component_wit(bytes: &[u8]) -> Option<String> {
    let checked = check::check(bytes).ok()?;
    let origin = Origin {
        name: "",
        adjacent_wit: None,
    };
    let wit = wit_with_docs(&checked, origin).or_else(|| docs::decode_component(bytes))?;
    wit_text::print(&wit)
}

/// Finds the WIT that has docs: in the component, else beside it.
fn wit_with_docs(checked: &Checked<'_>, origin: Origin<'_>) -> Option<wit_parser::Resolve> {
    let sections = checked
        .custom_sections
        .iter()
        .filter(|(name, _)| *name == toolwit_sections::WIT_SECTION)
        .map(|(_, bytes)| *bytes);
    docs::decode_packages(sections).or_else(|| docs::parse_wit(origin.adjacent_wit?))
}

fn entity_type(shape: &Shape, resource: &Resource, plugin: &str) -> EntityType {
    EntityType {
        name: resource.json_name(),
        description: resource.docs.clone(),
        methods: resource
            .methods
            .iter()
            .filter(|method| resource.id != Some(**method))
            .map(|method| define_shared_method(&shape.functions[*method], resource, plugin))
            .collect(),
    }
}

/// Describes a function that is a tool from the start.
pub(crate) fn define(shape: &Shape, function: &Function, plugin: &str) -> ToolDefinition {
    let id = ToolId::plugin(plugin, function.interface.as_deref(), &function.export);
    let name = match function.kind {
        FunctionKind::Command => snake_case(plugin),
        FunctionKind::Static(index) | FunctionKind::Constructor(index) | FunctionKind::Method(index) => {
            format!(
                "{}_{}",
                shape.resources[index.0].json_name(),
                snake_case(&function.name)
            )
        }
        FunctionKind::Free | FunctionKind::Dynamic => snake_case(&function.name),
    };
    let description = function
        .docs
        .clone()
        .unwrap_or_else(|| wit_text::plain_description(function, &name, plugin));
    let mut definition = ToolDefinition::new(
        id,
        name.clone(),
        description,
        serde_json::Value::clone(&function.input_schema),
    );
    definition.input_schema = function.input_schema.clone();
    definition.output_schema = function.output_schema.clone();
    let plugin = snake_case(plugin);
    match function.interface_name().map(snake_case) {
        Some(interface) => definition
            .or_named(format!("{interface}_{name}"))
            .or_named(format!("{plugin}_{interface}_{name}")),
        None => definition.or_named(format!("{plugin}_{name}")),
    }
}

/// Describes a method in the form that serves any number of entities: the id is a parameter.
pub(crate) fn define_shared_method(method: &Function, resource: &Resource, plugin: &str) -> ToolDefinition {
    let entity = resource.json_name();
    let id = ToolId::plugin(plugin, method.interface.as_deref(), &method.export);
    let name = format!("{entity}_{}", snake_case(&method.name));
    let description = method
        .docs
        .clone()
        .unwrap_or_else(|| wit_text::plain_description(method, &name, plugin));
    let mut schema = serde_json::Value::clone(&method.input_schema);
    let parameter = id_parameter(method, resource);
    if let Some(fields) = schema.as_object_mut() {
        let mut properties = serde_json::Map::new();
        let told = serde_json::json!({"type": "string", "description": format!("The id of the `{entity}`.")});
        properties.insert(parameter.clone(), told);
        if let Some(serde_json::Value::Object(own)) = fields.remove("properties") {
            properties.extend(own);
        }
        let mut required = vec![serde_json::Value::String(parameter)];
        if let Some(serde_json::Value::Array(own)) = fields.remove("required") {
            required.extend(own);
        }
        fields.remove("additionalProperties");
        fields.insert("properties".to_owned(), properties.into());
        fields.insert("required".to_owned(), required.into());
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    let mut definition = ToolDefinition::new(id, name.clone(), description, schema);
    definition.output_schema = method.output_schema.clone();
    definition.or_named(format!("{}_{name}", snake_case(plugin)))
}

/// Names the parameter that takes the entity's id: `customer_id`, or `the_customer_id` where the method has one itself.
pub(crate) fn id_parameter(method: &Function, resource: &Resource) -> String {
    let mut name = format!("{}_id", resource.json_name());
    while method.params.iter().any(|param| param.label.json == name) {
        name.insert_str(0, "the_");
    }
    name
}
