//! A real guest returns its arguments: known answers across the full mapping.

use serde_json::{Value, json};
use toolwit::ErrorKind;
use toolwit_tests::{Conversation, Guests};

async fn golden() -> Conversation {
    let guests = Guests::cached();
    Conversation::over(&[&guests.rust("golden").await])
}

fn every_type() -> Value {
    json!({
        "yes": true,
        "small": -128,
        "byte": 255,
        "signed_short": -32768,
        "short": 65535,
        "signed": -2_147_483_648_i64,
        "unsigned": 4_294_967_295_u32,
        "signed_long": "-9223372036854775808",
        "long": "18446744073709551615",
        "single": 0.1,
        "double": -0.0,
        "letter": "💩",
        "text": "null \u{0} byte, \u{202e}reversed, e\u{301} and 猫",
        "bytes": "AP/+",
        "names": ["", "a"],
        "pair": ["x", 7],
        "day": "sunday_night",
        "rights": ["read", "run_as_root"],
        "shape": {"many_corners": [[0, 0], [1, -1]]},
        "nick": null,
        "deep": {"some": null},
        "outcome": {"err": "no"},
        "bare": {"ok": null}
    })
}

// attack: E2, attack: E3, attack: E4
#[tokio::test]
async fn one_value_of_every_type_round_trips() {
    let mut golden = golden().await;
    let same = golden.value("same", json!({"it": every_type()})).await;
    assert_eq!(same, every_type());
    assert_eq!(same["double"].to_string(), "-0.0");
}

#[tokio::test]
async fn alternative_encodings_of_a_value_are_accepted() {
    let mut golden = golden().await;
    let mut it = every_type();
    it["small"] = json!(-128.0);
    it["signed_long"] = json!(i64::MIN);
    it["long"] = json!(u64::MAX);
    it["rights"] = json!(["run_as_root", "read"]);
    it.as_object_mut().unwrap().remove("nick");
    assert_eq!(golden.value("same", json!({"it": it})).await, every_type());
    for (field, value) in [
        ("deep", Value::Null),
        ("deep", json!({"some": 5})),
        ("shape", json!("none")),
        ("day", json!("monday")),
    ] {
        let mut it = every_type();
        it[field] = value;
        assert_eq!(golden.value("same", json!({"it": it.clone()})).await, it);
    }
}

// attack: E2
#[tokio::test]
async fn integers_and_floats_are_exact_to_the_last_bit() {
    let mut golden = golden().await;
    let sum = |a, b, sum| (json!({"a": a, "b": b}), sum);
    for (arguments, expected) in [
        sum(json!(9_007_199_254_740_993_u64), json!(0), json!("9007199254740993")),
        sum(json!("18446744073709551615"), json!(1), json!(0)),
        sum(
            json!(9_007_199_254_740_991_u64),
            json!(1),
            json!(9_007_199_254_740_992_u64),
        ),
    ] {
        assert_eq!(golden.value("add", arguments).await, expected);
    }
}

// attack: E4
#[tokio::test]
async fn nan_and_infinities_are_encoded_as_names() {
    let mut golden = golden().await;
    assert_eq!(golden.value("divide", json!({"a": 0, "b": 0})).await, json!("NaN"));
    assert_eq!(
        golden.value("divide", json!({"a": -1, "b": 0})).await,
        json!("-Infinity")
    );
    assert_eq!(
        golden.value("divide", json!({"a": "Infinity", "b": 2})).await,
        json!("Infinity")
    );
    assert_eq!(
        golden.value("single", json!({"x": 3.402_823_5e38})).await.to_string(),
        "3.4028235e+38"
    );
    let error = golden.error("single", json!({"x": 1e39})).await;
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn nested_options_are_lossless() {
    let mut golden = golden().await;
    for (deep, expected) in [
        (Value::Null, "None"),
        (json!({"some": null}), "Some(None)"),
        (json!({"some": {"some": null}}), "Some(Some(None))"),
        (json!({"some": {"some": 7}}), "Some(Some(Some(7)))"),
    ] {
        assert_eq!(golden.value("inspect", json!({"deep": deep})).await, json!(expected));
    }
    assert_eq!(golden.value("inspect", json!({})).await, json!("None"));
}

// attack: E5, attack: E6
#[tokio::test]
async fn invalid_argument_is_refused_with_its_path() {
    let mut golden = golden().await;
    for (pointer, value, expected) in [
        (
            "/byte",
            json!(256),
            "/it/byte: expected an integer from 0 to 255, found 256",
        ),
        (
            "/letter",
            json!("ab"),
            "/it/letter: expected a string of one character, found \"ab\"",
        ),
        (
            "/rights/1",
            json!("fly"),
            "/it/rights/1: there is no name `fly`; known are `read`, `write`, `run_as_root`",
        ),
        (
            "/shape",
            json!({"circle": "big"}),
            "/it/shape/circle: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", found \"big\"",
        ),
        (
            "/shape/many_corners/1",
            json!([1]),
            "/it/shape/many_corners/1: expected an array of 2 items, found 1",
        ),
        (
            "/bytes",
            json!("A*=="),
            "/it/bytes: expected base64 with `+` and `/`: invalid character at position 2",
        ),
        (
            "/outcome",
            json!({"ok": 1, "err": "x"}),
            "/it/outcome: expected `{\"ok\": …}` or `{\"err\": …}`, found an object with 2 keys",
        ),
    ] {
        let mut it = every_type();
        *it.pointer_mut(pointer).unwrap() = value;
        let error = golden.error("same", json!({"it": it})).await;
        assert_eq!(error.kind, ErrorKind::InvalidArguments);
        assert_eq!(error.message, expected);
    }
    let error = golden.error("add", json!({"a": 1, "b": 2, "c": 3})).await;
    assert_eq!(error.message, "there is no property `c`; known are `a`, `b`");
}

#[tokio::test]
async fn error_of_the_tool_is_a_result() {
    let mut golden = golden().await;
    let failed = golden.call("fail", json!({"how": {"circle": 1.5}})).await.unwrap();
    assert!(failed.is_error());
    assert_eq!(failed.value, Some(json!({"circle": 1.5})));
    assert_eq!(
        failed.for_llm, r#"{"circle":1.5}: By its radius."#,
        "with the docs of the case"
    );
    let failed = golden.call("fail", json!({"how": "none"})).await.unwrap();
    assert_eq!((failed.is_error(), failed.for_llm.as_str()), (true, "none: No shape."));
}

// attack: C21
#[tokio::test]
async fn panic_message_has_no_control_characters() {
    let mut golden = golden().await;
    let error = golden
        .error("give_up", json!({"why": "\u{1b}[31mthe cat\nis out"}))
        .await;
    assert_eq!(error.kind, ErrorKind::Trap);
    assert!(error.message.contains("the cat"), "{error}");
    assert!(
        !error.message.contains('\u{1b}') && !error.message.contains('\n'),
        "{error:?}"
    );
}

// accept: 33, accept: 73
#[tokio::test]
async fn docs_of_functions_types_fields_and_cases_reach_the_schema() {
    let golden = golden().await;
    let same = golden.tool("same");
    let definition = same.definition();
    assert_eq!(definition.description, "Returns the argument unchanged.");
    let shape = &definition.input_schema["properties"]["it"]["properties"]["shape"];
    assert_eq!(shape["oneOf"][1]["description"], "By its radius.");
    let order: Vec<_> = definition.input_schema["properties"]["it"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(order[..3], ["yes", "small", "byte"], "properties keep their order");
}
