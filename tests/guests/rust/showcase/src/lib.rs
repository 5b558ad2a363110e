//! One tool for each kind of content of the Model Context Protocol.

wit_bindgen::generate!({ generate_all });

use exports::test::showcase::showcase::{Guest, ToolResult};
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

impl Guest for Showcase {
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
