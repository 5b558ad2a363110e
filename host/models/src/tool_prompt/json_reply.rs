//! The JSON format in which a model answers or calls tools.

use serde_json::{Map, Value, json};

use super::reply::{InvalidReply, ParsedCall, Reply};
use toolwit_core::ToolCall;
use toolwit_core::text::{json_type, parse_json};

/// The key of an answer to the user.
pub(super) const ANSWER_KEY: &str = "answer";

/// The key of the list of calls.
pub(super) const TOOL_CALLS_KEY: &str = "tool_calls";

/// Reads a complete response. A text that does not start with `{` is an answer, since a server may ignore the schema.
///
/// # Errors
/// The response starts with `{`, but is not valid JSON with an answer, calls or both.
pub(super) fn read(text: &str) -> Result<Reply, InvalidReply> {
    let body = without_fence(text.trim());
    if !body.starts_with('{') {
        return Ok(Reply::text(text.trim()));
    }
    let reply = parse_json(body).map_err(|error| InvalidReply(format!("it is not valid JSON: {error}")))?;
    let fields = reply.as_object().cloned().unwrap_or_default();
    if let Some(key) = fields
        .keys()
        .find(|key| !matches!(key.as_str(), ANSWER_KEY | TOOL_CALLS_KEY))
    {
        return Err(InvalidReply(format!(
            "it has the key `{key}`; only `{ANSWER_KEY}` and `{TOOL_CALLS_KEY}` are known"
        )));
    }
    let calls = match fields.get(TOOL_CALLS_KEY) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(calls)) => calls
            .iter()
            .map(|call| ParsedCall::read(call, &["arguments"]))
            .collect::<Result<_, _>>()?,
        Some(other) => {
            let problem = format!("`{TOOL_CALLS_KEY}` is {}, not a list", json_type(other));
            return Err(InvalidReply(problem));
        }
    };
    let text = match fields.get(ANSWER_KEY) {
        None | Some(Value::Null) if calls.is_empty() => {
            return Err(InvalidReply(format!(
                "it has no `{ANSWER_KEY}`, and no call in `{TOOL_CALLS_KEY}`"
            )));
        }
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    Ok(Reply { text, calls })
}

/// Writes an earlier response in the format in which the model must respond.
pub(super) fn reply_text(text: &str, calls: &[ToolCall]) -> String {
    let mut fields = Map::new();
    if !text.is_empty() || calls.is_empty() {
        fields.insert(ANSWER_KEY.to_owned(), json!(text));
    }
    if !calls.is_empty() {
        let calls = calls.iter().map(call_json);
        fields.insert(TOOL_CALLS_KEY.to_owned(), calls.collect());
    }
    Value::Object(fields).to_string()
}

/// Converts a call to JSON. Arguments that are not valid JSON become an empty object.
pub(super) fn call_json(call: &ToolCall) -> Value {
    let arguments = parse_json(&call.arguments).unwrap_or_else(|_| json!({}));
    json!({"name": call.name, "arguments": arguments})
}

/// Removes a code fence around the complete text.
fn without_fence(text: &str) -> &str {
    let inner = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    match inner {
        Some(inner) => inner.strip_prefix("json").unwrap_or(inner).trim(),
        None => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> ParsedCall {
        ParsedCall {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn answers_and_calls_are_read() {
        assert_eq!(read(r#" {"answer": "hi\n"} "#), Ok(Reply::text("hi\n")));
        assert_eq!(read("```json\n{\"answer\": \"hi\"}\n```"), Ok(Reply::text("hi")));
        assert_eq!(read(r#"{"answer": {"n": 1}}"#), Ok(Reply::text(r#"{"n":1}"#)));
        let response =
            r#"{"answer": "now", "tool_calls": [{"name": "f", "arguments": {"b": 1, "a": "}"}}, {"name": "g"}]}"#;
        let reply = read(response).unwrap();
        assert_eq!(reply.text, "now");
        assert_eq!(reply.calls, [call("f", r#"{"b":1,"a":"}"}"#), call("g", "{}")]);
    }

    #[test]
    fn a_response_that_does_not_start_with_a_brace_is_an_answer() {
        for text in ["The sum is 3.", "", "[1]", "\"tool_calls\"", "I call {\"name\": \"f\"}"] {
            assert_eq!(read(text), Ok(Reply::text(text)));
        }
    }

    #[test]
    fn ambiguous_and_truncated_json_is_refused() {
        let refused = [
            r#"{"tool_calls": [{"name": "f", "arguments": {"a": 1}}"#,
            r#"{"tool_calls": [{"name": "f", "arguments": {"a": 1, "a": 2}}]}"#,
            r#"{"tool_calls": [], "tool_calls": [{"name": "f", "arguments": {}}]}"#,
            r#"{"tool_calls": [{"name": "f", "arguments": "{}"}]}"#,
            r#"{"tool_calls": [{"name": "f", "arguments": {}, "parameters": {}}]}"#,
            r#"{"tool_calls": [{"arguments": {}}]}"#,
            r#"{"tool_calls": {"name": "f", "arguments": {}}}"#,
            r#"{"tool_calls": []}"#,
            r#"{"name": "f", "arguments": {}}"#,
            r#"{"answer": "a"} {"tool_calls": [{"name": "f", "arguments": {}}]}"#,
            "{}",
        ];
        for text in refused {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_written_response_is_read_unchanged() {
        let calls = [ToolCall {
            id: "a".to_owned(),
            name: "f".to_owned(),
            arguments: r#"{"b":1}"#.to_owned(),
        }];
        for (text, calls) in [("hi \"you\"", &calls[..0]), ("", &calls), ("now", &calls), ("", &[])] {
            let reply = read(&reply_text(text, calls)).unwrap();
            assert_eq!((reply.text.as_str(), reply.calls.len()), (text, calls.len()));
        }
        assert_eq!(read(&reply_text("", &calls)).unwrap().calls, [call("f", r#"{"b":1}"#)]);
    }
}
