//! Parsing of the arguments that a model wrote, with lossless repairs only.

use serde_json::{Map, Value};

use crate::{Arguments, ToolError};

use crate::limits::{ARGUMENT_BYTES_MAX, ARGUMENT_PARTS_MAX};
use crate::text::{json_part_count, json_type, parse_json};

/// Parsed arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedArguments {
    /// The arguments.
    pub arguments: Arguments,
    /// Whether the text was empty or invalid JSON, and had to be repaired.
    pub is_repaired: bool,
}

/// Parses the arguments that a model wrote.
///
/// Only lossless repairs are made: empty text means no arguments, and a code fence around the object or a comma before a
/// closing bracket is removed. All other invalid JSON is rejected with the position of the error.
///
/// # Errors
/// [`ToolError::Model`] for text that is not a JSON object, has a duplicate key, is longer than [`ARGUMENT_BYTES_MAX`], or
/// has more than [`ARGUMENT_PARTS_MAX`] values and names.
pub fn parse_arguments(text: &str) -> Result<ParsedArguments, ToolError> {
    if text.len() > ARGUMENT_BYTES_MAX {
        return Err(ToolError::invalid_arguments(format!(
            "the arguments have {} bytes; at most {ARGUMENT_BYTES_MAX} are read",
            text.len()
        )));
    }
    check_parts(text)?;
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(ParsedArguments {
            arguments: Map::new(),
            is_repaired: true,
        });
    }
    match parse_object(trimmed) {
        Ok(arguments) => Ok(ParsedArguments {
            arguments,
            is_repaired: false,
        }),
        Err(first_error) => match parse_object(&without_trailing_commas(without_fence(trimmed))) {
            Ok(arguments) => Ok(ParsedArguments {
                arguments,
                is_repaired: true,
            }),
            Err(_) => Err(first_error),
        },
    }
}

/// Checks the number of values and names in the text of arguments, before they are parsed.
///
/// # Errors
/// [`ToolError::Model`] if there are more than [`ARGUMENT_PARTS_MAX`].
fn check_parts(text: &str) -> Result<(), ToolError> {
    if json_part_count(text.as_bytes()) > ARGUMENT_PARTS_MAX {
        let message = format!("the arguments have more than {ARGUMENT_PARTS_MAX} values and names");
        return Err(ToolError::invalid_arguments(message));
    }
    Ok(())
}

fn parse_object(text: &str) -> Result<Arguments, ToolError> {
    match parse_json(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(value) => Err(ToolError::invalid_arguments(format!(
            "the arguments must be a JSON object, not {}",
            json_type(&value)
        ))),
        Err(error) => Err(ToolError::invalid_arguments(format!(
            "the arguments are not valid JSON: {error}"
        ))),
    }
}

/// Removes a Markdown code fence around the text.
fn without_fence(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    match inner.split_once('\n') {
        Some((language, body)) if language.trim().chars().all(char::is_alphanumeric) => body.trim(),
        _ => inner.trim(),
    }
}

/// Removes each comma before a closing bracket, outside strings.
fn without_trailing_commas(text: &str) -> String {
    let mut repaired = String::with_capacity(text.len());
    let mut is_in_string = false;
    let mut is_escaped = false;
    for (position, character) in text.char_indices() {
        if is_in_string {
            is_in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
        } else if character == '"' {
            is_in_string = true;
        } else if character == ',' && text[position + 1..].trim_start().starts_with(['}', ']']) {
            continue;
        }
        repaired.push(character);
    }
    repaired
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Option<Value> {
        parse_arguments(text).ok().map(|parsed| Value::Object(parsed.arguments))
    }

    // attack: E9
    #[test]
    fn arguments_of_too_many_parts_are_refused_before_they_are_parsed() {
        let list = |items: usize| format!("{{\"a\": [{}]}}", vec!["{}"; items].join(","));
        assert!(parse(&list(60_000)).is_some());
        let error = parse_arguments(&list(70_000)).unwrap_err().to_string();
        assert!(error.contains("more than 131072 values"), "{error}");
        assert!(
            parse(&json!({"a": "[{,".repeat(1 << 20)}).to_string()).is_some(),
            "a string counts as one value, whatever it contains"
        );
    }

    // accept: 15, attack: E1, attack: F3
    #[test]
    fn only_lossless_repairs_are_made() {
        assert_eq!(parse(""), Some(json!({})));
        assert_eq!(parse("```json\n{\"a\": 1}\n```"), Some(json!({"a": 1})));
        assert_eq!(parse("{\"a\": [1, 2,],}"), Some(json!({"a": [1, 2]})));
        assert_eq!(parse("{\"a\": \"x,}\"}"), Some(json!({"a": "x,}"})));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let truncated = "{\"a\": \"the rest is miss";
        let refused = [
            "null",
            "[]",
            "5",
            "{",
            truncated,
            "{'a':1}",
            "{\"a\":1}garbage",
            "{\"a\":1,\"a\":2}",
            "{\"a\":NaN}",
            "{\"a\":1e400}",
            "{\"a\":\"\\ud800\"}",
            &deep,
        ];
        for text in refused {
            assert!(parse_arguments(text).is_err(), "{}", &text[..text.len().min(40)]);
        }
    }

    #[test]
    fn arguments_over_the_limit_are_not_parsed() {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(ARGUMENT_BYTES_MAX));
        assert!(parse_arguments(&text).unwrap_err().report().message.contains("at most"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = parse_arguments(&text);
        }

        #[test]
        fn valid_objects_are_parsed_without_repair(key in "[a-z]{1,5}", text in ".*", number in any::<i64>()) {
            let object = json!({ key: [text, number, null] });
            let result = parse_arguments(&object.to_string()).unwrap();
            prop_assert!(!result.is_repaired);
            prop_assert_eq!(Value::Object(result.arguments), object);
        }
    }
}
