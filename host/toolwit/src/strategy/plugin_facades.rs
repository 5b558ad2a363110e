//! Groups the tools of plugin interfaces into facades.

use std::sync::Arc;

use indexmap::IndexMap;

use toolwit_agent::injection::Facade;
use toolwit_core::text::snake_case;
use toolwit_core::{Tool, ToolId};

/// Maximum number of tools that the description of a facade lists.
const LISTED_TOOLS_MAX: usize = 12;

/// Groups the tools of each interface into a facade. `describe_plugin` returns the description of a plugin by its name,
/// or `None` if the tools of the plugin are not to be grouped. A facade takes the position of the first of its
/// tools. The tool of an interface with a single tool stays as it is.
#[must_use]
pub fn facades_by_interface(
    tools: Vec<Arc<dyn Tool>>,
    describe_plugin: impl Fn(&str) -> Option<String>,
) -> Vec<Arc<dyn Tool>> {
    let mut groups: IndexMap<String, Vec<Arc<dyn Tool>>> = IndexMap::new();
    for tool in tools {
        let id = &tool.definition().id;
        let interface = id.interface_of().filter(|_| describe_plugin(id.owner()).is_some());
        // A tool that is not grouped gets a group of its own, so that the order of the tools is kept.
        let group_id = interface.map_or_else(|| id.to_string(), str::to_owned);
        groups.entry(group_id).or_default().push(tool);
    }
    let shown_tools = groups.into_iter().flat_map(|(group_id, tools)| {
        let owner = tools.first().map(|tool| tool.definition().id.owner().to_owned());
        let description = owner
            .and_then(|owner| describe_plugin(&owner))
            .filter(|_| tools.len() > 1);
        match description.and_then(|description| interface_facade(&group_id, &description, &tools)) {
            Some(facade) => vec![facade],
            None => tools,
        }
    });
    shown_tools.collect()
}

/// Creates the facade of an interface. Logs a warning and returns `None` if the interface cannot be a facade.
///
/// `interface` is the id of the interface, such as `shop/demo:shop/orders@1.0.0`.
fn interface_facade(interface: &str, plugin_description: &str, tools: &[Arc<dyn Tool>]) -> Option<Arc<dyn Tool>> {
    let (plugin, path) = interface.split_once('/')?;
    let unversioned = path.split_once('@').map_or(path, |(path, _)| path);
    let name = snake_case(unversioned.rsplit(['/', ':']).next().unwrap_or(unversioned));
    let names: Vec<_> = tools
        .iter()
        .take(LISTED_TOOLS_MAX)
        .map(|tool| format!("`{}`", tool.definition().name()))
        .collect();
    let ending = if tools.len() > names.len() { " and others" } else { "" };
    let names = names.join(", ");
    let description = format!("{plugin_description} Call it to get the tools {names}{ending}.");
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
    fn an_interface_with_several_functions_is_one_facade() {
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
        assert_eq!(
            names,
            ["orders", "ping", "count", "add", "sub"],
            "the tools of `calc` are not grouped"
        );
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
