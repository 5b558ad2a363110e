//! Tools in namespaces, which the provider loads when the model searches for them.

use std::collections::HashMap;

use serde_json::{Value, json};

use toolwit_agent::model::{ChatRequest, DeclaredTool, Delivery};
use toolwit_core::ToolName;

/// The maximum number of tools that the description of a namespace names. The model sees only this description before its
/// search. Tools after these, such as injected ones, do not change the description, so that the prompt stays cached.
const NAMED_TOOLS_MAX: usize = 12;

/// The namespaces of the tools of a request. There are none unless the provider defers the tools.
#[derive(Debug, Default)]
pub(super) struct Namespaces<'r> {
    /// The name of each namespaced tool, with the name of its namespace.
    by_tool: HashMap<&'r str, ToolName>,
}

impl<'r> Namespaces<'r> {
    pub(super) fn of(request: &ChatRequest<'r>) -> Self {
        if request.delivery != Delivery::Native {
            return Self::default();
        }
        let tools = request.tools.iter();
        let by_tool = tools.filter_map(|tool| Some((tool.name.as_str(), plugin_namespace(tool)?)));
        Self {
            by_tool: by_tool.collect(),
        }
    }

    /// Returns the namespace of a tool, if it has one.
    pub(super) fn namespace_of(&self, tool: &str) -> Option<&str> {
        self.by_tool.get(tool).map(ToolName::as_str)
    }

    /// Returns the declarations of the tools in their order. The tools of a namespace are grouped at the position of its first
    /// tool.
    pub(super) fn group(&self, tools: &[DeclaredTool], declare: impl Fn(&DeclaredTool) -> Value) -> Vec<Value> {
        let mut grouped: Vec<Value> = Vec::new();
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for tool in tools {
            let Some(namespace) = self.namespace_of(tool.name.as_str()) else {
                grouped.push(declare(tool));
                continue;
            };
            let position = *positions.entry(namespace).or_insert_with(|| {
                grouped.push(json!({
                    "type": "namespace",
                    "name": namespace,
                    "description": self.description(namespace, tools),
                    "tools": [],
                }));
                grouped.len() - 1
            });
            if let Some(members) = grouped[position]["tools"].as_array_mut() {
                members.push(declare(tool));
            }
        }
        grouped
    }

    fn description(&self, namespace: &str, tools: &[DeclaredTool]) -> String {
        let names = tools.iter().map(|tool| tool.name.as_str());
        let members = names.filter(|name| self.namespace_of(name) == Some(namespace));
        let first: Vec<_> = members.take(NAMED_TOOLS_MAX).collect();
        format!("Tools of `{namespace}`, such as {}.", first.join(", "))
    }
}

/// Returns the namespace of a tool: the name of its plugin, in a form that the API accepts. Native tools and tools of the host
/// have none.
fn plugin_namespace(tool: &DeclaredTool) -> Option<ToolName> {
    let id = &tool.definition.id;
    if id.is_native() || id.is_host() {
        return None;
    }
    let owner = id.owner();
    Some(ToolName::sanitised(owner).unwrap_or_else(|| ToolName::hashed(owner, owner)))
}
