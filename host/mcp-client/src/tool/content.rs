//! Converts the content of a server's answer to the result of a tool.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use crate::value::Redaction;
use toolwit_core::limits::CallLimits;
use toolwit_core::text::json_len;
use toolwit_core::{Artifact, Error, ErrorKind, ExceededLimit, Phase, ToolError, ToolResult};

/// The content of a result: texts and artifacts, each in the order of the server's answer.
pub(super) struct ResultContent<'r> {
    texts: Vec<String>,
    artifacts: Vec<Artifact>,
    /// The secrets that the server received.
    redaction: &'r Redaction,
}

impl<'r> ResultContent<'r> {
    pub(super) fn new(redaction: &'r Redaction) -> Self {
        Self {
            texts: Vec::new(),
            artifacts: Vec::new(),
            redaction,
        }
    }

    /// Adds a block of content. The model cannot read binary data, so the text for an image or audio block only states
    /// the type and the size of the data.
    pub(super) fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.add_binary("image", &image.mime_type, image.data),
            ContentBlock::Audio(audio) => self.add_binary("audio", &audio.mime_type, audio.data),
            ContentBlock::Resource(embedded) => self.add_resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let text = format!(
                    "[resource `{}`: {}]",
                    self.redaction.quoted(&link.uri),
                    self.redaction.quoted(&link.name)
                );
                self.texts.push(text);
                let value = json!({"uri": link.uri, "name": link.name, "mime_type": link.mime_type, "description": link.description});
                self.artifacts.push(Artifact::new("resource_link", value));
            }
            _ => self.texts.push("[content of an unsupported type]".to_owned()),
        }
    }

    /// Adds the content of a resource.
    pub(super) fn add_resource(&mut self, resource: ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents {
                uri, mime_type, text, ..
            } => {
                self.artifacts.push(Artifact::new(
                    "resource",
                    json!({"uri": uri, "mime_type": mime_type, "text": text}),
                ));
                self.texts.push(text);
            }
            ResourceContents::BlobResourceContents {
                uri, mime_type, blob, ..
            } => {
                let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
                self.texts.push(format!(
                    "[resource `{}`: {}, {}]",
                    self.redaction.quoted(&uri),
                    self.redaction.quoted(media_type),
                    describe_size(&blob)
                ));
                self.artifacts.push(Artifact::new(
                    "resource",
                    json!({"uri": uri, "mime_type": mime_type, "blob": blob}),
                ));
            }
            _ => self.texts.push("[a resource of an unsupported type]".to_owned()),
        }
    }

    /// Adds an image or audio block; `class` is `image` or `audio`. The kind of its artifact is the declared media type
    /// if that is valid and begins with the class, or else the class alone.
    fn add_binary(&mut self, class: &str, mime_type: &str, data: String) {
        self.texts.push(format!(
            "[{class}: {}, {}]",
            self.redaction.quoted(mime_type),
            describe_size(&data)
        ));
        let is_media_type_char = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
        let is_media_type = mime_type.starts_with(class) && mime_type.chars().all(is_media_type_char);
        let kind = if is_media_type { mime_type } else { class };
        self.artifacts.push(Artifact::new(kind, json!({"data": data})));
    }

    /// Creates the result, without secrets. The result of a failed call has no structured value.
    ///
    /// # Errors
    /// [`ErrorKind::ResultBytes`] if the text, the value or the artifacts are too large.
    pub(super) fn into_result(
        self,
        structured_content: Option<Value>,
        is_error: bool,
    ) -> Result<ToolResult, ToolError> {
        let redaction = self.redaction;
        let text = redaction.redact_text(join_lines(self.texts));
        let structured_content = structured_content.map(|mut value| {
            redaction.redact_value(&mut value);
            value
        });
        let artifacts: Vec<_> = self
            .artifacts
            .into_iter()
            .map(|mut artifact| {
                redaction.redact_value(&mut artifact.value);
                artifact
            })
            .collect();
        check_size(&text, structured_content.as_ref(), &artifacts)?;
        // `null` says nothing that a text does not say.
        let structured_content = structured_content.filter(|value| !value.is_null() || text.trim().is_empty());
        let mut result = match (is_error, structured_content) {
            (true, value) => ToolResult::error(text_with_data(text, value.as_ref())),
            (false, Some(value)) => {
                let text = text_with_data(text, Some(&value));
                let mut result = ToolResult::value(value);
                result.for_llm = text;
                result
            }
            (false, None) => ToolResult::text(text),
        };
        result.artifacts = artifacts;
        Ok(result)
    }
}

/// Returns the text for the model: the text of the server and its structured content, unless the text already has it.
fn text_with_data(text: String, value: Option<&Value>) -> String {
    let Some(value) = value.filter(|value| !has_data(&text, value)) else {
        return text;
    };
    let data = value.to_string();
    let bytes_max = CallLimits::default().result_bytes_max;
    if text.trim().is_empty() {
        data
    } else if (text.len() + data.len()) as u64 >= bytes_max {
        format!(
            "{text}\n\n[structured content of {} bytes, which is too large beside the text]",
            data.len()
        )
    } else {
        format!("{text}\n\n{data}")
    }
}

/// Returns whether a text is the JSON form of a value. Some server libraries put a value that is not an object into the field
/// `result` of an object, and a list into one block of text for each item.
fn has_data(text: &str, value: &Value) -> bool {
    let is_form_of = |value: &Value| match value {
        Value::String(value) => value == text,
        value => serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *value),
    };
    let has_items = |value: &Value| {
        let items = value.as_array().filter(|items| !items.is_empty());
        items.is_some_and(|items| {
            let parsed = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            parsed.map(Result::ok).eq(items.iter().cloned().map(Some))
        })
    };
    let wrapped = value
        .get("result")
        .filter(|_| value.as_object().is_some_and(|fields| fields.len() == 1));
    std::iter::once(value)
        .chain(wrapped)
        .any(|value| is_form_of(value) || has_items(value))
}

/// Joins texts with line breaks. A single text, which may be large, is not copied.
fn join_lines(mut texts: Vec<String>) -> String {
    if texts.len() == 1 {
        texts.pop().unwrap_or_default()
    } else {
        texts.join("\n")
    }
}

/// Converts the result that a server returned for a call.
///
/// # Errors
/// [`ErrorKind::ResultBytes`] if the result is too large.
pub(super) fn tool_result(call_result: CallToolResult, redaction: &Redaction) -> Result<ToolResult, ToolError> {
    let mut content = ResultContent::new(redaction);
    call_result.content.into_iter().for_each(|block| content.add(block));
    content.into_result(call_result.structured_content, call_result.is_error == Some(true))
}

fn check_size(text: &str, structured_content: Option<&Value>, artifacts: &[Artifact]) -> Result<(), ToolError> {
    let limits = CallLimits::default();
    let value_bytes = structured_content.map_or(0, json_len);
    let artifact_bytes: usize = artifacts.iter().map(|artifact| json_len(&artifact.value)).sum();
    let sizes = [
        (
            "result_bytes_max",
            limits.result_bytes_max,
            text.len().max(value_bytes) as u64,
        ),
        ("artifact_bytes_max", limits.artifact_bytes_max, artifact_bytes as u64),
    ];
    for (name, max, used) in sizes {
        if used > max {
            let message = format!("the result has {used} bytes; at most {max} are allowed");
            let error = Error::new(ErrorKind::ResultBytes, Phase::Execute, message)
                .with_suggestion("ask for less, such as a page or a range")
                .with_limit(ExceededLimit::new(name, max, used));
            return Err(ToolError::Model(error));
        }
    }
    Ok(())
}

/// Describes the approximate size of the data that a base64 text encodes.
fn describe_size(data: &str) -> String {
    format!("{} bytes", data.len() / 4 * 3)
}

/// Returns the first `chars_max` characters of a server's text as one line, without secrets.
pub(super) fn one_line(text: &str, chars_max: usize, redaction: &Redaction) -> String {
    let text = redaction.printable(text);
    let words = text.split_whitespace().collect::<Vec<_>>();
    words.join(" ").chars().take(chars_max).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn result(value: Value) -> Result<ToolResult, ToolError> {
        let redaction = Redaction::default();
        redaction.add("hunter22");
        tool_result(serde_json::from_value(value).unwrap(), &redaction)
    }

    #[test]
    fn content_becomes_text_and_artifacts() {
        let result = result(json!({"content": [
            {"type": "text", "text": "one hunter22"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "two"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAAAAAA", "mimeType": "audio/wav"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]}))
        .unwrap();
        let lines: Vec<_> = result.for_llm.lines().collect();
        assert_eq!(
            lines,
            [
                "one [redacted]",
                "[image: image/png, 3 bytes]",
                "two",
                "[resource `file:///b`: audio/wav, 6 bytes]",
                "[resource `file:///c`: c]"
            ]
        );
        let kinds: Vec<_> = result.artifacts.iter().map(|artifact| artifact.kind.as_str()).collect();
        assert_eq!(kinds, ["image/png", "resource", "resource", "resource_link"]);
    }

    // attack: G9
    #[test]
    fn no_part_of_a_secret_is_left_where_a_text_is_cut() {
        let uri = format!("file:///{}hunter22", "x".repeat(485));
        let linked = result(json!({"content": [{"type": "resource_link", "uri": uri, "name": "hunter22"}]})).unwrap();
        assert!(
            !linked.for_llm.contains("hunter") && linked.for_llm.contains("[redac"),
            "{}",
            linked.for_llm
        );
        let redaction = Redaction::default();
        redaction.add("hunter22");
        assert_eq!(one_line("a\n hunter22", 7, &redaction), "a [reda");
    }

    #[test]
    fn structured_content_becomes_the_value_and_is_error_is_kept() {
        let succeeded = result(json!({"content": [], "structuredContent": {"a": 1}})).unwrap();
        assert_eq!(
            (succeeded.value, succeeded.for_llm.as_str()),
            (Some(json!({"a": 1})), r#"{"a":1}"#)
        );
        let failed = result(json!({"content": [{"type": "text", "text": "no"}], "isError": true})).unwrap();
        assert!(failed.is_error() && failed.for_llm == "no");
    }

    #[test]
    fn the_model_receives_the_structured_content_beside_the_text() {
        let for_llm = |text: &str, structured: Value| {
            let content = json!({"content": [{"type": "text", "text": text}], "structuredContent": structured});
            let result = result(content).unwrap();
            (result.for_llm, result.value)
        };
        let (text, value) = for_llm("Scraped 1 URL.", json!({"price": 42}));
        assert_eq!(text, "Scraped 1 URL.\n\n{\"price\":42}");
        assert_eq!(value, Some(json!({"price": 42})));
        for (text, structured) in [
            ("{\"price\": 42}", json!({"price": 42})),
            ("7", json!(7)),
            ("7", json!({"result": 7})),
            ("word", json!("word")),
            ("word", json!({"result": "word"})),
            ("1\n{\"a\": 2}", json!({"result": [1, {"a": 2}]})),
        ] {
            assert_eq!(
                for_llm(text, structured.clone()),
                (text.to_owned(), Some(structured)),
                "the text has the data"
            );
        }
        assert_eq!(for_llm("text", json!(null)), ("text".to_owned(), None));
        let failed =
            json!({"content": [{"type": "text", "text": "no"}], "structuredContent": {"code": 3}, "isError": true});
        assert_eq!(result(failed).unwrap().for_llm, "no\n\n{\"code\":3}");
        let large = json!({"rows": "x".repeat(800_000)});
        let (text, _) = for_llm(&"y".repeat(800_000), large);
        assert!(text.ends_with("which is too large beside the text]"));
    }

    // attack: G9
    #[test]
    fn a_giant_result_is_refused() {
        let giant = json!({"content": [{"type": "text", "text": "x".repeat(2 << 20)}]});
        let error = result(giant).unwrap_err();
        assert_eq!(error.report().kind, ErrorKind::ResultBytes);
    }
}
