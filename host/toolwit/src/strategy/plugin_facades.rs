//! Groups the tools of plugin interfaces into facades.

use std::sync::Arc;

use indexmap::IndexMap;

use toolwit_agent::injection::Facade;
use toolwit_core::text::snake_case;
use toolwit_core::{Tool, ToolId};

/// Maximum number of tools that the description of a facade lists.
const LISTED_TOOLS_MAX: usize = 12;

/// Groups the tools of each interface into a facade, for the plugins for which `about` returns a description. A facade
/// takes the position of the first of its tools. The tool of an interface with a single tool is not grouped.
#[must_use]
pub fn facades_by_interface(tools: Vec<Arc<dyn Tool>>, about: impl Fn(&str) -> Option<String>) -> Vec<Arc<dyn Tool>> {
    let mut groups: IndexMap<String, Vec<Arc<dyn Tool>>> = IndexMap::new();
    for tool in tools {
        let id = &tool.definition().id;
        let interface = id.interface_of().filter(|_| about(id.owner()).is_some());
        let group = interface.map_or_else(|| id.to_string(), str::to_owned);
        groups.entry(group).or_default().push(tool);
    }
    let grouped = groups.into_iter().flat_map(|(interface, tools)| {
        let owner = tools.first().map(|tool| tool.definition().id.owner().to_owned());
        let about = owner.and_then(|owner| about(&owner)).filter(|_| tools.len() > 1);
        match about.and_then(|about| interface_facade(&interface, &about, &tools)) {
            Some(facade) => vec![facade],
            None => tools,
        }
    });
    grouped.collect()
}

/// Creates the facade of an interface, or logs a warning and returns `None` if it cannot be a facade.
fn interface_facade(interface: &str, about: &str, tools: &[Arc<dyn Tool>]) -> Option<Arc<dyn Tool>> {
    let (plugin, path) = interface.split_once('/')?;
    let unversioned = path.split_once('@').map_or(path, |(path, _)| path);
    let name = snake_case(unversioned.rsplit(['/', ':']).next().unwrap_or(unversioned));
    let names: Vec<_> = tools
        .iter()
        .take(LISTED_TOOLS_MAX)
        .map(|tool| format!("`{}`", tool.definition().name()))
        .collect();
    let more = if tools.len() > names.len() { " and others" } else { "" };
    let description = format!("{about} Call it to get the tools {}{more}.", names.join(", "));
    let facade = Facade::builder(&name, description.trim())
        .id(ToolId::interface(plugin, path))
        .fallback_name(format!("{}_{name}", snake_case(plugin)))
        .tools(tools.iter().cloned())
        .build();
    let facade = facade.inspect_err(|error| tracing::warn!(interface, %error, "an interface cannot be a facade"));
    facade.ok().map(|facade| Arc::new(facade) as Arc<dyn Tool>)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolwit_core::{NativeTool, ToolDefinition, ToolResult};

    fn tool(plugin: &str, interface: Option<&str>, function: &str) -> Arc<dyn Tool> {
        let id = ToolId::plugin(plugin, interface, function);
        let definition = ToolDefinition::new(id, function, "", json!({"type": "object"}));
        Arc::new(NativeTool::from_definition(definition, |_, _| async { Ok(ToolResult::text("")) }).unwrap())
    }

    // accept: 58
    #[test]
    fn an_interface_with_several_functions_is_one_tool() {
        let shop = Some("demo:shop/orders@1.0.0");
        let tools = vec![
            tool("shop", shop, "find"),
            tool("shop", None, "ping"),
            tool("shop", shop, "cancel"),
            tool("shop", Some("demo:shop/stock@1.0.0"), "count"),
            tool("calc", Some("demo:calc/ops@1.0.0"), "add"),
            tool("calc", Some("demo:calc/ops@1.0.0"), "sub"),
        ];
        let shown = facades_by_interface(tools, |plugin| (plugin == "shop").then(|| "Sells.".to_owned()));
        let names: Vec<_> = shown.iter().map(|tool| tool.definition().name()).collect();
        assert_eq!(names, ["orders", "ping", "count", "add", "sub"], "calc stays flat");
        let definition = shown[0].definition();
        assert_eq!(definition.id.as_str(), "shop/demo:shop/orders@1.0.0");
        assert_eq!(
            definition.description,
            "Sells. Call it to get the tools `find`, `cancel`."
        );
        assert_eq!(definition.names[1], "shop_orders");
        assert_eq!(shown[0].facade().unwrap().fixed_tools().len(), 2);
    }
}
