//! Finds a tool by a name or an id that a user typed.

use std::sync::Arc;

use super::Toolwit;
use toolwit_core::{Error, ErrorKind, Phase, Tool, ToolDefinition, ToolLookup, ToolSet};
use toolwit_registry::{Package, Registry};
use toolwit_sandbox::{EntityType, Plugin};

/// Maximum number of ids that the error about an ambiguous name lists.
const IDS_SHOWN_MAX: usize = 8;

/// The reason why no tool was found for a name or an id.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No tool has the name or id.
    #[error("there is no tool `{wanted}`")]
    Unknown {
        /// The name or id.
        wanted: String,
        /// The most similar names.
        nearest: Vec<String>,
        /// The plugins whose tools are missing, because they are broken or their dynamic tools are not discovered.
        unavailable: Vec<String>,
    },
    /// Several tools have the name.
    #[error("{} tools have the name `{wanted}`", ids.len())]
    Ambiguous {
        /// The name.
        wanted: String,
        /// The ids of the tools.
        ids: Vec<String>,
    },
    /// A method of an entity has the name or id, and no call has returned an entity of this type.
    #[error("it is a method of `{entity}`, and this conversation has no `{entity}` yet")]
    NeedsEntity {
        /// The plugin's name.
        plugin: String,
        /// The name of the entity's type.
        entity: String,
        /// The method's id.
        method: String,
    },
    /// The plugin of the tool is broken, or its dynamic tools are not discovered.
    #[error("{}", error.message)]
    Unavailable {
        /// The plugin's name.
        plugin: String,
        /// The reason.
        error: Error,
    },
}

impl From<FindError> for Error {
    fn from(error: FindError) -> Self {
        let message = error.to_string();
        match error {
            FindError::Unavailable { error, .. } => error,
            FindError::Ambiguous { ids, .. } => Self::new(ErrorKind::AmbiguousTool, Phase::Validate, message)
                .with_suggestion(format!("call one by its id: {}", first_ids(&ids))),
            FindError::NeedsEntity { plugin, entity, method } => {
                Self::new(ErrorKind::ToolUnavailable, Phase::Validate, message)
                    .with_plugin(plugin)
                    .with_tool(method)
                    .with_suggestion(format!(
                        "call a tool that returns a `{entity}` first, in the same conversation"
                    ))
            }
            FindError::Unknown {
                nearest, unavailable, ..
            } => {
                let mut sentences = Vec::new();
                if !nearest.is_empty() {
                    sentences.push(format!("did you mean {}?", quoted(&nearest, " or ")));
                }
                if !unavailable.is_empty() {
                    let names = quoted(&unavailable, ", ");
                    sentences.push(format!(
                        "Tools are missing because these plugins are broken or undiscovered: {names}"
                    ));
                }
                let error = Self::new(ErrorKind::UnknownTool, Phase::Validate, message);
                if sentences.is_empty() {
                    error
                } else {
                    error.with_suggestion(sentences.join(" "))
                }
            }
        }
    }
}

fn quoted(names: &[String], separator: &str) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(separator)
}

/// Returns a list of the first ids, with the number of ids that the list omits.
fn first_ids(ids: &[String]) -> String {
    let shown = quoted(&ids[..ids.len().min(IDS_SHOWN_MAX)], ", ");
    match ids.len().saturating_sub(IDS_SHOWN_MAX) {
        0 => shown,
        omitted => format!("{shown}, and {omitted} more"),
    }
}

impl Toolwit {
    /// Finds a tool by its id, by its preferred name if no other tool prefers the same name, or by the name that a tool
    /// set would assign to it.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`] with the nearest names, or [`ErrorKind::AmbiguousTool`] with the ids to choose from.
    pub fn find_tool(tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
        find(tools, wanted).map_err(Error::from)
    }

    /// Finds a tool of this host among `tools`, like [`Toolwit::find_tool`]. If the tool is missing, the error contains the
    /// reason that the registry knows: a method has the name, the plugin is broken, or the dynamic tools of the plugin are
    /// not discovered.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn find_or_explain(&self, tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, FindError> {
        find(tools, wanted).map_err(|error| match error {
            FindError::Unknown { wanted, nearest, .. } => missing_tool_error(&self.registry(), wanted, nearest),
            error => error,
        })
    }
}

/// A method of an entity type. Its definition has the entity's id as a parameter.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct EntityMethod<'a> {
    /// The plugin.
    pub plugin: &'a Plugin,
    /// The entity's type.
    pub entity: &'a EntityType,
    /// The definition of the method.
    pub definition: &'a ToolDefinition,
}

impl<'a> EntityMethod<'a> {
    /// Finds a method by its id or name.
    #[must_use]
    pub fn find(registry: &'a Registry, wanted: &str) -> Option<Self> {
        let is_wanted = |method: &&ToolDefinition| method.id.as_str() == wanted || method.name() == wanted;
        registry.plugins().find_map(|plugin| {
            let mut entities = plugin.inspection().entities.iter();
            entities.find_map(|entity| {
                Some(Self {
                    plugin,
                    entity,
                    definition: entity.methods.iter().find(is_wanted)?,
                })
            })
        })
    }
}

/// Finds a tool by its id, by its preferred name, or by the name that a tool set would assign to it.
pub(super) fn find(tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, FindError> {
    if let Some(tool) = tools.iter().find(|tool| tool.definition().id.as_str() == wanted) {
        return Ok(tool.clone());
    }
    let candidates: Vec<_> = tools.iter().filter(|tool| tool.definition().name() == wanted).collect();
    match candidates.as_slice() {
        [tool] => Ok(Arc::clone(tool)),
        [] => find_by_assigned_name(tools, wanted),
        several => Err(FindError::Ambiguous {
            wanted: wanted.to_owned(),
            ids: several.iter().map(|tool| tool.definition().id.to_string()).collect(),
        }),
    }
}

/// Finds a tool by the name that a tool set of all these tools assigns to it.
fn find_by_assigned_name(tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, FindError> {
    let mut set = ToolSet::new();
    for tool in tools {
        set.add(tool.clone());
    }
    if let ToolLookup::Found(named) = set.look_up(wanted) {
        return Ok(named.tool);
    }
    Err(FindError::Unknown {
        wanted: wanted.to_owned(),
        nearest: set.nearest(wanted).iter().map(ToString::to_string).collect(),
        unavailable: Vec::new(),
    })
}

/// Returns the error for a name that no tool has: a method has the name, the plugin of the tool is unavailable, or the
/// name is unknown.
fn missing_tool_error(registry: &Registry, wanted: String, nearest: Vec<String>) -> FindError {
    if let Some(method) = EntityMethod::find(registry, &wanted) {
        return FindError::NeedsEntity {
            plugin: method.plugin.name().to_owned(),
            entity: method.entity.name.clone(),
            method: method.definition.id.to_string(),
        };
    }
    let unavailable_with_error = |package: &Package| {
        let error = package.broken_reason().cloned().or_else(|| package.discovery_error())?;
        Some((package.name.clone(), error))
    };
    let packages = registry.packages();
    let mut unavailable: Vec<_> = packages.iter().filter_map(unavailable_with_error).collect();
    // `wanted` is an id, which begins with the plugin's name, or a name. A plugin with a single function often has the
    // name of this function, so a name is compared with the plugins too.
    let owner = wanted.split(['/', '#']).next();
    let owner_position = unavailable.iter().position(|(name, _)| Some(name.as_str()) == owner);
    // If no plugin works, the error of the first plugin helps more than the error about an unknown name.
    let are_all_unavailable = !unavailable.is_empty() && unavailable.len() == packages.len();
    if let Some(position) = owner_position.or(are_all_unavailable.then_some(0)) {
        let (plugin, error) = unavailable.swap_remove(position);
        return FindError::Unavailable { plugin, error };
    }
    FindError::Unknown {
        wanted,
        nearest,
        unavailable: unavailable.into_iter().map(|(name, _)| name).collect(),
    }
}
