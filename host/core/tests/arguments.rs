//! Arguments that a model wrote, by their text.

use serde_json::{Value, json};
use toolwit_core::parse_arguments;

// accept: 15
#[test]
fn repairs_do_not_change_texts() {
    for (text, expected) in [
        (r#"{"a": "x\", ]",}"#, json!({"a": "x\", ]"})),
        (r#"{"a": "\\", "b": [1,],}"#, json!({"a": "\\", "b": [1]})),
        (r#"{"a\"": "{,}",}"#, json!({"a\"": "{,}"})),
    ] {
        let parsed = parse_arguments(text).map(|parsed| Value::Object(parsed.arguments));
        assert_eq!(parsed.ok(), Some(expected), "{text}");
    }
}
