//! The pages of the lists of resources and prompts, as the model reads them.

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

/// Returns the parameters of the request for the page that the arguments of a call select.
pub(super) fn page_of(arguments: &Arguments) -> PaginatedRequestParams {
    let cursor = arguments.get("cursor").and_then(Value::as_str);
    PaginatedRequestParams::default().with_cursor(cursor.map(str::to_owned))
}

/// Adds the cursor of the next page to a page, and a note if items were left out that no later page shows.
pub(super) fn add_continuation(page: &mut Value, next_cursor: Option<String>, is_cut: bool) {
    if let Some(cursor) = next_cursor {
        page["next_cursor"] = json!(cursor);
    }
    if is_cut {
        page["note"] = json!("the server has more than this list can show");
    }
}
