//! The forms that the tools show.

use serde_json::{Value, json};
use toolwit_mcp_server::ClientRequest;

fn form(message: &str, properties: Value, required: Value) -> ClientRequest {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let message = message.to_owned();
    ClientRequest::Form { message, schema }
}

/// A form with one field.
pub(crate) fn field(message: &str, name: &str, kind: &str) -> ClientRequest {
    form(message, json!({name: {"type": kind}}), json!([name]))
}
