//! Results of calls.

use rmcp::RoleServer;
use rmcp::model::{Annotations, CallToolResult, ContentBlock, Role, TextContent};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::artifact;
use super::tool::{RESULT_PROPERTY, ResultShape};
use toolwit::ToolResult;

/// Messages to the user that a tool sent during a call.
pub(crate) type Notes = Vec<String>;

/// Maximum length of a text that repeats the structured content of its result, in bytes. Some clients read events of at most
/// one megabyte over HTTP, and quotes in the text need two bytes.
const REPEATED_BYTES_MAX: usize = 256 << 10;

/// Whether a long text may repeat the structured content of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// The text is complete.
    Full,
    /// A long text is replaced by a reference to the structured content.
    Short,
}

impl Repetition {
    /// Returns the repetition for the client of a request. Over HTTP, some clients limit the size of an answer.
    pub(crate) fn for_client(request: &RequestContext<RoleServer>) -> Self {
        match request.extensions.get::<http::request::Parts>() {
            Some(_) => Self::Short,
            None => Self::Full,
        }
    }
}

/// Converts a result. `notes` and the result's text for the user become content with the audience `user`.
pub(crate) fn call_result(
    result: &ToolResult,
    shape: ResultShape,
    notes: Notes,
    repetition: Repetition,
) -> CallToolResult {
    let text = result.content();
    let mut structured = structured_content(result, shape).filter(|_| !result.is_error());
    let is_long = text.len() > REPEATED_BYTES_MAX && repetition == Repetition::Short;
    let is_repeated = is_long && structured.is_some() && is_text_of(result, &text);
    if is_repeated && shape == ResultShape::Untyped {
        // The client knows no schema that requires the structured content, and its model reads the text.
        structured = None;
    }
    let text = match &structured {
        Some(_) if is_repeated => format!("the result has {} bytes, and is in `structuredContent`", text.len()),
        _ => text,
    };
    let user_text = result
        .user_text()
        .filter(|user_text| *user_text != text)
        .map(str::to_owned);
    let has_artifacts = !result.artifacts.is_empty();
    let mut content = Vec::with_capacity(1 + notes.len() + result.artifacts.len());
    if !text.is_empty() || !has_artifacts {
        content.push(text_block(text.as_str()));
    }
    content.extend(notes.into_iter().chain(user_text).map(user_block));
    let artifacts = result.artifacts.iter().zip(1..);
    content.extend(artifacts.map(|(artifact, number)| artifact::content(artifact, number)));
    if result.is_error() {
        return CallToolResult::error(content);
    }
    let mut converted = CallToolResult::success(content);
    converted.structured_content = structured;
    converted
}

/// Returns whether a text is the value of a result: the text itself, or its JSON.
fn is_text_of(result: &ToolResult, text: &str) -> bool {
    match &result.value {
        Some(Value::String(value)) if value == text => true,
        Some(value) => value.to_string() == text,
        None => false,
    }
}

/// Returns the structured content of a result, in the form that the output schema for the client requires.
fn structured_content(result: &ToolResult, shape: ResultShape) -> Option<Value> {
    let value = result.value.clone();
    match shape {
        ResultShape::Untyped => value.filter(Value::is_object),
        ResultShape::Plain => value,
        ResultShape::Wrapped => value.map(|value| json!({RESULT_PROPERTY: value})),
    }
}

pub(super) fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

fn user_block(text: String) -> ContentBlock {
    let audience = Annotations::default().with_audience(vec![Role::User]);
    ContentBlock::Text(TextContent::new(text).with_annotations(audience))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use toolwit::Artifact;

    fn convert(result: &ToolResult, shape: ResultShape) -> Value {
        serde_json::to_value(call_result(result, shape, Vec::new(), Repetition::Short)).unwrap()
    }

    #[test]
    fn structured_content_is_sent_in_addition_to_its_text() {
        let sent = convert(&ToolResult::value(json!({"sum": 3})), ResultShape::Plain);
        assert_eq!(sent["structuredContent"], json!({"sum": 3}));
        assert_eq!(sent["content"], json!([{"type": "text", "text": "{\"sum\":3}"}]));
        let wrapped = convert(&ToolResult::value(json!([1, 2])), ResultShape::Wrapped);
        assert_eq!(wrapped["structuredContent"], json!({"result": [1, 2]}));
        assert_eq!(wrapped["content"][0]["text"], "[1,2]");
    }

    #[test]
    fn a_long_result_is_sent_once_over_http_and_twice_over_standard_output() {
        let size_max = 1 << 20;
        let items = ToolResult::value(json!(vec!["\"quoted\""; 60_000]));
        let note = &convert(&items, ResultShape::Wrapped)["content"][0]["text"];
        assert!(note.as_str().unwrap().contains("`structuredContent`"), "{note}");
        for (result, shape) in [
            (ToolResult::value(json!("x".repeat(700 << 10))), ResultShape::Wrapped),
            (items, ResultShape::Wrapped),
            (
                ToolResult::value(json!({"text": "x".repeat(700 << 10)})),
                ResultShape::Plain,
            ),
            (
                ToolResult::value(json!({"text": "x".repeat(700 << 10)})),
                ResultShape::Untyped,
            ),
        ] {
            let once = convert(&result, shape);
            assert!(once.to_string().len() < size_max, "{shape:?}");
            assert_eq!(once.get("structuredContent").is_some(), shape != ResultShape::Untyped);
            let twice = call_result(&result, shape, Vec::new(), Repetition::Full);
            assert!(json!(twice).to_string().len() > size_max, "{shape:?}");
            assert!(twice.structured_content.is_some());
        }
        let mut other_text = ToolResult::value(json!({"rows": 3}));
        other_text.for_llm = "x".repeat(700 << 10);
        let sent = convert(&other_text, ResultShape::Plain);
        assert_eq!(
            sent["content"][0]["text"], other_text.for_llm,
            "the text says something else"
        );
    }

    #[test]
    fn an_error_has_no_structured_content() {
        let mut error = ToolResult::value(json!({"reason": "full"}));
        error.status = toolwit::tool::ToolStatus::Error;
        let sent = convert(&error, ResultShape::Plain);
        assert_eq!(sent["isError"], true);
        assert_eq!(sent.get("structuredContent"), None);
    }

    #[test]
    fn messages_to_the_user_have_the_audience_user() {
        let result = ToolResult::text("placed").with_user_text("Thank you!");
        let sent = serde_json::to_value(call_result(
            &result,
            ResultShape::Untyped,
            vec!["Sent.".to_owned()],
            Repetition::Full,
        ))
        .unwrap();
        let user_content = |text: &str| json!({"type": "text", "text": text, "annotations": {"audience": ["user"]}});
        let expected = json!([{"type": "text", "text": "placed"}, user_content("Sent."), user_content("Thank you!")]);
        assert_eq!(sent["content"], expected);
    }

    #[test]
    fn an_image_without_text_is_the_only_content() {
        let image = ToolResult::text("").with_artifact(Artifact::new("image/png", json!("AAAA")));
        let sent = convert(&image, ResultShape::Untyped);
        assert_eq!(sent["content"].as_array().map(Vec::len), Some(1));
        assert_eq!(sent["content"][0]["type"], "image");
    }
}
