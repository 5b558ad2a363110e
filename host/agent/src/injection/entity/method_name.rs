//! Tool names of methods that are not bound to one entity.

use toolwit_core::ToolId;
use toolwit_core::text::snake_case;

/// Returns the tool name of a method, without the id of an entity: `customer_get_average_spend`.
pub(in crate::injection) fn method_tool_name(prefix: &str, id: &ToolId) -> String {
    let unbound = id.unbound();
    let method = unbound.as_str().rsplit(['.', '#']).next().unwrap_or_default();
    format!("{prefix}_{}", snake_case(method))
}
