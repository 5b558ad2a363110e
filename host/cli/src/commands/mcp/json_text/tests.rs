#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn edit(text: &str) -> Result<String, String> {
    JsonText::parse(text)?.with_member("servers", "toolwit", &json!({"command": "x"}))
}

#[test]
fn comments_numbers_and_the_order_of_other_entries_stay() {
    let text = "\u{feff}// mine\n{\n\t\"size\": 1.50, // big: {\n\t\"id\": 12345678901234567890123,\n\t\"servers\": {\n\t\t\"a\": { \"args\": [\"/*\"] }, // kept, too\n\t},\n\t/* end */\n}\n";
    let expected = text.replace(
        "// kept, too\n",
        "// kept, too\n\t\t\"toolwit\": {\n\t\t\t\"command\": \"x\"\n\t\t},\n",
    );
    assert_eq!(edit(text).unwrap(), expected);
}

#[test]
fn a_comment_stays_with_the_member_before_it() {
    let text = "{\n  \"servers\": {\n    \"a\": 1 // one\n  }\n}";
    let expected =
        "{\n  \"servers\": {\n    \"a\": 1, // one\n    \"toolwit\": {\n      \"command\": \"x\"\n    }\n  }\n}";
    assert_eq!(edit(text).unwrap(), expected);
}

#[test]
fn an_existing_entry_is_replaced_in_its_place() {
    let text = "{\r\n    \"servers\": {\r\n        \"toolwit\": {\"old\": [1, \"}\"]}, // ours\r\n        \"b\": 2\r\n    }\r\n}\r\n";
    let expected = text.replace(
        "{\"old\": [1, \"}\"]}",
        "{\r\n            \"command\": \"x\"\r\n        }",
    );
    assert_eq!(edit(text).unwrap(), expected);
    assert_eq!(
        edit(r#"{"servers":{"toolwit":3,"b":{}}}"#)
            .unwrap()
            .matches("toolwit")
            .count(),
        1
    );
}

#[test]
fn missing_objects_are_added() {
    for (text, expected) in [
        (
            "",
            "{\n  \"servers\": {\n    \"toolwit\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
        ),
        (
            "{}",
            "{\n  \"servers\": {\n    \"toolwit\": {\n      \"command\": \"x\"\n    }\n  }\n}",
        ),
        (
            "{ // none\n}\n",
            "{ // none\n  \"servers\": {\n    \"toolwit\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
        ),
        (r#"{"a": 1}"#, r#"{"a": 1, "servers": {"toolwit":{"command":"x"}}}"#),
        (
            "{\n  \"servers\": {}\n}",
            "{\n  \"servers\": {\n    \"toolwit\": {\n      \"command\": \"x\"\n    }\n  }\n}",
        ),
    ] {
        assert_eq!(edit(text).unwrap(), expected, "{text}");
    }
    let commented = edit("// only a comment\n").unwrap();
    assert!(commented.starts_with("// only a comment\n{"), "{commented}");
}

#[test]
fn the_result_is_valid_and_has_all_members() {
    for text in [
        "{}",
        "{\"a\":[1,2,],}",
        "{\"a\":{\"b\":\"\\\"}\"}}",
        "{\"servers\":{\"x\":null,}}",
    ] {
        let edited = edit(text).unwrap();
        let before: Value = serde_json::from_slice(&plain_text(text).unwrap()).unwrap();
        let after: Value = serde_json::from_slice(&plain_text(&edited).unwrap()).unwrap();
        assert_eq!(after["servers"]["toolwit"], json!({"command": "x"}), "{edited}");
        let kept = before
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name != "servers");
        for (name, value) in kept {
            assert_eq!(&after[name], value, "{edited}");
        }
    }
}

#[test]
fn text_that_is_no_object_is_refused() {
    for (text, reason) in [
        ("[]", "not a JSON object"),
        ("{\"servers\": 3}", "`servers` is not a JSON object"),
        ("{\"a\": }", "not valid JSON"),
        ("{} /* ", "no end"),
        ("{\"a\" \"b\"", "not valid JSON"),
    ] {
        assert!(edit(text).unwrap_err().contains(reason), "{text}");
    }
}
