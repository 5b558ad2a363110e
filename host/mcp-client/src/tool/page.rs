//! The paging of the tools that list resources and prompts.

use rmcp::model::PaginatedRequestParams;
use serde_json::{Value, json};

use toolwit_core::Arguments;

/// Returns the schema of the arguments of a tool that lists resources or prompts.
pub(super) fn page_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"cursor": {"type": "string", "description": "The `next_cursor` of the previous page. Leave it out for the first page."}},
        "additionalProperties": false,
    })
}

/// Returns the request parameters for the page that the arguments of a call select.
pub(super) fn page_parameters(arguments: &Arguments) -> PaginatedRequestParams {
    let cursor = arguments.get("cursor").and_then(Value::as_str);
    PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned))
}

/// Adds the cursor of the next page to a page. If `has_omissions`, adds a note that no page shows some of the items.
pub(super) fn add_continuation(page: &mut Value, next_cursor: Option<String>, has_omissions: bool) {
    if let Some(cursor) = next_cursor {
        page["next_cursor"] = json!(cursor);
    }
    if has_omissions {
        page["note"] = json!("some items of the server are not shown, because the list is too long");
    }
}
