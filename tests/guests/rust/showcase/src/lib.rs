//! One tool for each kind of content of the Model Context Protocol.

wit_bindgen::generate!({ generate_all });

use exports::test::showcase::showcase::{Guest, ToolResult};
use toolwit::plugin::ask::{self, Answer, AskError, Form};
use toolwit::plugin::log::{self, Level};
use toolwit::plugin::output;
use toolwit::plugin::types::Artifact;

/// A picture of one red pixel.
const IMAGE: &str = "\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==\"";

/// A sound without samples.
const AUDIO: &str = "\"UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=\"";

const RESOURCE: &str =
    r#"{"uri": "test://embedded-resource", "mime_type": "text/plain", "text": "This is an embedded resource content."}"#;

const MIXED_RESOURCE: &str =
    r#"{"uri": "test://mixed-content-resource", "mime_type": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}"#;

struct Showcase;

fn artifact(kind: &str, value: &str) -> Artifact {
    Artifact { kind: kind.to_owned(), value: value.to_owned() }
}

fn result(text: &str, artifacts: Vec<Artifact>) -> ToolResult {
    ToolResult {
        for_llm: text.to_owned(),
        for_user: None,
        silent: false,
        is_error: false,
        artifacts,
        background: None,
    }
}

/// A form for a name and an address.
const CONTACT: &str = r#"{"type": "object", "properties": {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"}
}, "required": ["username", "email"]}"#;

/// A form with a field of each type, with a default.
const DEFAULTS: &str = r#"{"type": "object", "properties": {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": true}
}, "required": []}"#;

/// A form with a field of each kind of choice.
const CHOICES: &str = r#"{"type": "object", "properties": {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": [
        {"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}
    ]},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [
        {"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}
    ]}}
}, "required": []}"#;

/// Asks, and returns the answer in the words of the protocol.
fn ask(key: &str, message: &str, schema: &str) -> Result<String, String> {
    let form = Form { key: key.to_owned(), message: message.to_owned(), schema: schema.to_owned() };
    match ask::ask(&form) {
        Ok(Answer::Accepted(values)) => Ok(format!("state-ok: action=accept, content={values}")),
        Ok(Answer::Declined) => Ok("state-ok: action=decline".to_owned()),
        Ok(Answer::Cancelled) => Ok("state-ok: action=cancel".to_owned()),
        Err(AskError::InvalidForm(reason) | AskError::Denied(reason) | AskError::Unavailable(reason) | AskError::Limit(reason)) => {
            Err(reason)
        }
    }
}

/// Asks with one required field.
fn ask_field(key: &str, message: &str, name: &str, kind: &str) -> Result<String, String> {
    let schema = format!(r#"{{"type": "object", "properties": {{"{name}": {{"type": "{kind}"}}}}, "required": ["{name}"]}}"#);
    ask(key, message, &schema)
}

impl Guest for Showcase {
    fn test_tool_with_logging() -> String {
        for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            log::log(Level::Info, message);
        }
        "Logging test completed".to_owned()
    }

    fn test_elicitation(message: String) -> Result<String, String> {
        ask("form", &message, CONTACT)
    }

    fn test_elicitation_sep1034_defaults() -> Result<String, String> {
        ask("form", "Check the defaults", DEFAULTS)
    }

    fn test_elicitation_sep1330_enums() -> Result<String, String> {
        ask("form", "Choose", CHOICES)
    }

    fn test_input_required_result_elicitation() -> Result<String, String> {
        ask_field("user_name", "What is your name?", "name", "string")
    }

    fn test_input_required_result_request_state() -> Result<String, String> {
        ask_field("confirm", "Please confirm", "ok", "boolean")
    }

    fn test_input_required_result_tampered_state() -> Result<String, String> {
        ask_field("confirm", "Please confirm", "ok", "boolean")
    }

    fn test_input_required_result_multi_round() -> Result<String, String> {
        let name = ask_field("step1", "Step 1: What is your name?", "name", "string")?;
        let color = ask_field("step2", "Step 2: What is your favorite color?", "color", "string")?;
        Ok(format!("{name} {color}"))
    }

    fn test_simple_text() -> String {
        "This is a simple text response for testing.".to_owned()
    }

    fn test_image_content() -> ToolResult {
        result("", vec![artifact("image/png", IMAGE)])
    }

    fn test_audio_content() -> ToolResult {
        result("", vec![artifact("audio/wav", AUDIO)])
    }

    fn test_embedded_resource() -> ToolResult {
        result("", vec![artifact("resource", RESOURCE)])
    }

    fn test_multiple_content_types() -> ToolResult {
        let artifacts = vec![artifact("image/png", IMAGE), artifact("resource", MIXED_RESOURCE)];
        result("Multiple content types test:", artifacts)
    }

    fn test_error_handling() -> Result<String, String> {
        Err("This tool intentionally returns an error for testing".to_owned())
    }

    fn test_tool_with_progress() -> String {
        for step in ["0 of 100", "50 of 100", "100 of 100"] {
            output::progress(step);
        }
        "Progress test completed".to_owned()
    }

    fn test_streaming_elicitation() -> String {
        "nothing was asked".to_owned()
    }

    fn test_logging_tool() -> String {
        println!("a message of the guest");
        "something was logged".to_owned()
    }

    fn count_to(end: u32) -> Vec<u32> {
        (1..=end).collect()
    }

    fn spin() -> String {
        let mut number: u64 = 1;
        loop {
            number = std::hint::black_box(number.wrapping_mul(3));
            if number == 0 {
                return "stopped".to_owned();
            }
        }
    }
}

export!(Showcase);
