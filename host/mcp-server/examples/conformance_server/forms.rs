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

pub(crate) fn contact(message: &str) -> ClientRequest {
    let text = |description: &str| json!({"type": "string", "description": description});
    let properties = json!({"username": text("User's response"), "email": text("User's email address")});
    form(message, properties, json!(["username", "email"]))
}

/// A field of each type, with a default.
pub(crate) fn defaults() -> ClientRequest {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    form("Check the defaults", properties, json!([]))
}

/// A field of each kind of enumeration.
pub(crate) fn enumerations() -> ClientRequest {
    let titled = |value: &str, title: &str| json!({"const": value, "title": title});
    let options = [
        titled("value1", "First"),
        titled("value2", "Second"),
        titled("value3", "Third"),
    ];
    let plain = json!(["option1", "option2", "option3"]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": options},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": options}},
    });
    form("Choose", properties, json!([]))
}
