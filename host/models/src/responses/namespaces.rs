//! Namespaces, which group deferred tools by plugin so that the model can search for them.

use std::collections::HashMap;

use serde_json::{Value, json};

use toolwit_agent::model::{ChatRequest, DeclaredTool, ToolDelivery};
use toolwit_core::ToolName;

/// The maximum number of tools that the description of a namespace names. Before its search, the model sees only this description.
/// Further tools, such as injected tools, do not change the description, so that the prompt stays cached.
const DESCRIBED_TOOLS_MAX: usize = 12;

/// The namespaces of the tools of a request. Empty unless the delivery is [`ToolDelivery::Native`].
#[derive(Debug, Default)]
pub(super) struct Namespaces<'r> {
    /// The namespace of each tool, by the name of the tool.
    by_tool: HashMap<&'r str, ToolName>,
}

impl<'r> Namespaces<'r> {
    pub(super) fn of(request: &ChatRequest<'r>) -> Self {
        if request.delivery != ToolDelivery::Native {
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

    /// Returns the declarations of the tools in order. All tools of a namespace are at the position of the first tool of this
    /// namespace.
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

    /// Returns the description of a namespace, which names its first tools.
    fn description(&self, namespace: &str, tools: &[DeclaredTool]) -> String {
        let names = tools.iter().map(|tool| tool.name.as_str());
        let members = names.filter(|name| self.namespace_of(name) == Some(namespace));
        let first_names: Vec<_> = members.take(DESCRIBED_TOOLS_MAX).collect();
        format!("Tools of `{namespace}`, such as {}.", first_names.join(", "))
    }
}

/// Returns the namespace of a tool: the name of its plugin, in a form that the API accepts. Native tools and tools of the host
/// have no namespace.
fn plugin_namespace(tool: &DeclaredTool) -> Option<ToolName> {
    let id = &tool.definition.id;
    if id.is_native() || id.is_host() {
        return None;
    }
    let owner = id.owner();
    Some(ToolName::sanitised(owner).unwrap_or_else(|| ToolName::hashed(owner, owner)))
}
