//! Tests of the mapping with hand-written values.

use super::*;
use crate::values::types::{Resource, ResourceIndex};

/// Returns the error of decoding a value.
fn decode_error(ty: &WitType, value: Value) -> String {
    decode_value(ty, value.clone()).expect_err(&value.to_string())
}

/// Parses JSON text, so that a test can contain numbers as a model writes them.
fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

// accept: 106
#[test]
fn types_map_to_schemas() {
    let schema = |ty: WitType| echo_function(&ty).input_schema["properties"]["value"].clone();
    let string = json!({"type": "string"});
    assert_eq!(schema(WitType::String), string);
    assert_eq!(schema(WitType::Bool), json!({"type": "boolean"}));
    assert_eq!(
        schema(WitType::S16),
        json!({"type": "integer", "minimum": -32_768, "maximum": 32_767})
    );
    assert_eq!(schema(WitType::F64)["anyOf"][0], json!({"type": "number"}));
    assert_eq!(
        schema(WitType::List(Box::new(WitType::String))),
        json!({"type": "array", "items": string})
    );
    let size = schema(WitType::Enum(labels(&["small", "very-large"])));
    assert_eq!(
        (&size["type"], &size["enum"]),
        (&json!("string"), &json!(["small", "very_large"]))
    );
    let record = schema(WitType::Record(vec![
        field("name", WitType::String),
        field("is-new", WitType::Option(Box::new(WitType::Bool))),
    ]));
    assert_eq!(record["properties"]["name"], string);
    assert_eq!(record["required"], json!(["name"]), "an option is not required");
    assert_eq!(record["additionalProperties"], json!(false));
}

// attack: E2
#[test]
fn value_that_is_not_an_integer_in_range_is_refused() {
    assert_eq!(decode_value(&WitType::U8, parse("1.0")), Ok(Val::U8(1)));
    assert_eq!(decode_value(&WitType::U8, parse("255")), Ok(Val::U8(255)));
    for bad in ["256", "-1", "1.5", "\"1\"", "true", "null", "[]", "1e3"] {
        assert!(
            decode_error(&WitType::U8, parse(bad)).contains("an integer from 0 to 255"),
            "{bad}"
        );
    }
    assert_eq!(
        decode_value(&WitType::S64, parse("-9223372036854775808")),
        Ok(Val::S64(i64::MIN))
    );
    assert_eq!(
        decode_value(&WitType::U64, parse("18446744073709551615")),
        Ok(Val::U64(u64::MAX))
    );
    for bad in ["18446744073709551616", "-1", "1e19"] {
        assert!(decode_value(&WitType::U64, parse(bad)).is_err(), "{bad}");
    }
}

// attack: E2
#[test]
fn integers_of_64_bits_decode_from_numbers_and_text() {
    for number in ["9007199254740993", "-9007199254740993", "9223372036854775807"] {
        let value = Val::S64(number.parse().unwrap());
        assert_eq!(decode_value(&WitType::S64, parse(number)), Ok(value.clone()));
        assert_eq!(decode_value(&WitType::S64, json!(number)), Ok(value.clone()));
        assert_eq!(
            encode_value(&WitType::S64, &value),
            json!(number),
            "an integer beyond 2^53 is encoded as text"
        );
    }
    assert_eq!(
        encode_value(&WitType::S64, &Val::S64(1 << 53)),
        json!(9_007_199_254_740_992_i64)
    );
    assert_eq!(
        encode_value(&WitType::U64, &Val::U64(u64::MAX)),
        json!("18446744073709551615")
    );
    for bad in [
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "0x1",
        "1.0",
        "1e3",
        "99999999999999999999999999999999999999999999",
    ] {
        let error = decode_error(&WitType::S64, json!(bad));
        assert!(error.contains("or one as decimal text"), "{error}");
    }
}

// attack: E2
#[test]
fn rounded_number_is_refused() {
    for lossy in ["9007199254740992.0", "9007199254740993.0", "1e18"] {
        let error = decode_error(&WitType::S64, parse(lossy));
        assert!(error.contains("without fraction or exponent"), "{error}");
    }
    assert_eq!(
        decode_value(&WitType::S64, parse("9007199254740991.0")),
        Ok(Val::S64((1 << 53) - 1))
    );
}

// attack: E4
#[test]
fn floats_keep_value_and_sign() {
    assert_eq!(
        decode_error(&WitType::F32, parse("1e39")),
        "/value: expected a number that fits 32 bits, found 1e+39"
    );
    assert_eq!(
        decode_value(&WitType::F32, parse("3.4028235e38")),
        Ok(Val::Float32(f32::MAX))
    );
    assert_eq!(encode_value(&WitType::F32, &Val::Float32(0.1)).to_string(), "0.1");
    assert_eq!(encode_value(&WitType::F64, &Val::Float64(-0.0)).to_string(), "-0.0");
    assert_eq!(decode_value(&WitType::F64, parse("-0.0")), Ok(Val::Float64(-0.0)));
    assert_eq!(
        encode_value(&WitType::F64, &Val::Float64(0.1 + 0.2)).to_string(),
        "0.30000000000000004"
    );
    for (name, value) in [
        ("NaN", f64::NAN),
        ("Infinity", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
    ] {
        assert_eq!(encode_value(&WitType::F64, &Val::Float64(value)), json!(name));
        assert_eq!(decode_value(&WitType::F64, json!(name)), Ok(Val::Float64(value)));
    }
    for bad in [json!("nan"), json!("1.5"), json!("inf"), json!(true), Value::Null] {
        assert!(decode_value(&WitType::F64, bad.clone()).is_err(), "{bad}");
    }
}

// attack: E3
#[test]
fn char_is_one_scalar_value() {
    assert_eq!(decode_value(&WitType::Char, json!("💩")), Ok(Val::Char('💩')));
    assert_eq!(decode_value(&WitType::Char, json!("\0")), Ok(Val::Char('\0')));
    for bad in [json!(""), json!("ab"), json!("e\u{301}"), json!(97)] {
        assert!(decode_value(&WitType::Char, bad.clone()).is_err(), "{bad}");
    }
    assert!(
        serde_json::from_str::<Value>(r#""\ud800""#).is_err(),
        "half a surrogate pair is not valid JSON"
    );
    let unusual_text = "a\0b\u{202e}\u{feff}".to_owned();
    assert_eq!(
        decode_value(&WitType::String, json!(unusual_text)),
        Ok(Val::String(unusual_text))
    );
}

#[test]
fn nested_options_are_distinguished() {
    let ty = option(option(option(WitType::U8)));
    let some = |value| Val::Option(Some(Box::new(value)));
    let none = Val::Option(None);
    for (json, value) in [
        (json!(null), none.clone()),
        (json!({"some": null}), some(none.clone())),
        (json!({"some": {"some": null}}), some(some(none))),
        (json!({"some": {"some": 7}}), some(some(some(Val::U8(7))))),
    ] {
        assert_eq!(encode_value(&ty, &value), json);
        assert_eq!(decode_value(&ty, json), Ok(value));
    }
    assert_eq!(
        decode_error(&ty, json!({"none": null})),
        "/value: expected `null` or `{\"some\": …}`, found the key `none`"
    );
    assert_eq!(
        decode_error(&ty, json!({"some": {"some": 256}})),
        "/value/some/some: expected an integer from 0 to 255, found 256"
    );
}

// attack: E5
#[test]
fn variant_with_unknown_case_or_wrong_payload_is_refused() {
    let ty = WitType::Variant(vec![case("not-found", None), case("too-many", Some(WitType::U8))]);
    assert_eq!(
        decode_value(&ty, json!("not_found")),
        Ok(Val::Variant("not-found".to_owned(), None))
    );
    let payload = Some(Box::new(Val::U8(3)));
    assert_eq!(
        decode_value(&ty, json!({"too_many": 3})),
        Ok(Val::Variant("too-many".to_owned(), payload))
    );
    for (bad, message) in [
        (
            json!("too_many"),
            "the case `too_many` has a payload; write `{\"too_many\": …}`",
        ),
        (
            json!({"not_found": 1}),
            "the case `not_found` has no payload; write `\"not_found\"`",
        ),
        (
            json!({"not_found": null, "too_many": 3}),
            "expected a case's name, or an object with a case and its payload, found an object with 2 keys",
        ),
        (
            json!({}),
            "expected a case's name, or an object with a case and its payload, found an object with 0 keys",
        ),
        (
            json!("not-found"),
            "there is no case `not-found`; known are `not_found`, `too_many`",
        ),
        (
            json!(7),
            "expected a case's name, or an object with a case and its payload, found 7",
        ),
    ] {
        assert_eq!(decode_error(&ty, bad), format!("/value: {message}"));
    }
    assert_eq!(
        decode_error(&ty, json!({"too_many": "x"})),
        "/value/too_many: expected an integer from 0 to 255, found \"x\""
    );
}

// attack: E5
#[test]
fn wrong_tuple_length_and_unknown_names_are_refused() {
    let pair = WitType::Tuple(vec![WitType::U8, WitType::Bool]);
    assert_eq!(
        decode_error(&pair, json!([1])),
        "/value: expected an array of 2 items, found 1"
    );
    assert_eq!(
        decode_error(&pair, json!([1, true, 2])),
        "/value: expected an array of 2 items, found 3"
    );
    assert_eq!(
        decode_error(&pair, json!([1, 2])),
        "/value/1: expected a boolean, found 2"
    );
    let color = WitType::Enum(labels(&["red", "dark-green"]));
    assert_eq!(
        decode_value(&color, json!("dark_green")),
        Ok(Val::Enum("dark-green".to_owned()))
    );
    assert_eq!(
        decode_error(&color, json!("Red")),
        "/value: there is no name `Red`; known are `red`, `dark_green`"
    );
    let names: Vec<_> = (0..40).map(|index| format!("f-{index}")).collect();
    let flags = WitType::Flags(names.iter().map(|name| Label::new(name)).collect());
    assert_eq!(
        decode_value(&flags, json!(["f_39", "f_0"])),
        Ok(Val::Flags(vec!["f-39".to_owned(), "f-0".to_owned()]))
    );
    assert_eq!(
        decode_error(&flags, json!(["f_1", "f_1"])),
        "/value/1: the flag `f_1` is named twice"
    );
    assert!(decode_error(&flags, json!(["f_40"])).starts_with("/value/0: there is no name `f_40`; known are `f_0`"));
}

// attack: E6
#[test]
fn record_with_missing_or_unknown_property_is_refused() {
    let ty = WitType::Record(vec![
        field("full-name", WitType::String),
        field("nick-name", option(WitType::String)),
    ]);
    let person = |nick: Option<&str>| {
        let nick = nick.map(|nick| Box::new(Val::String(nick.to_owned())));
        let name = Val::String("Ann".to_owned());
        Val::Record(vec![
            ("full-name".to_owned(), name),
            ("nick-name".to_owned(), Val::Option(nick)),
        ])
    };
    assert_eq!(decode_value(&ty, json!({"full_name": "Ann"})), Ok(person(None)));
    assert_eq!(
        decode_value(&ty, json!({"nick_name": null, "full_name": "Ann"})),
        Ok(person(None))
    );
    assert_eq!(
        decode_value(&ty, json!({"nick_name": "A", "full_name": "Ann"})),
        Ok(person(Some("A")))
    );
    assert_eq!(
        decode_error(&ty, json!({})),
        "/value: the property `full_name` is missing"
    );
    for unknown_name in ["Full_Name", "__proto__", "a/b~c", "constructor", ""] {
        let error = decode_error(&ty, json!({"full_name": "Ann", unknown_name: 1}));
        assert_eq!(
            error,
            format!("/value: there is no property `{unknown_name}`; known are `full_name`, `nick_name`")
        );
    }
    assert_eq!(
        decode_error(&ty, json!([])),
        "/value: expected an object, found an array"
    );
}

// attack: E6
#[test]
fn error_path_is_a_json_pointer() {
    let ty = list(WitType::Record(vec![Field {
        label: Label {
            wit: "odd".to_owned(),
            json: "a/b~c".to_owned(),
            docs: None,
        },
        ty: WitType::Bool,
    }]));
    assert_eq!(
        decode_error(&ty, json!([{"a/b~c": 1}])),
        "/value/0/a~1b~0c: expected a boolean, found 1"
    );
}

#[test]
fn bytes_are_base64_and_errors_name_the_position() {
    assert_eq!(
        encode_value(&WitType::Bytes, &Val::List(vec![Val::U8(0xfb), Val::U8(0xff)])),
        json!("+/8=")
    );
    assert_eq!(
        decode_value(&WitType::Bytes, json!("+/9=")),
        decode_value(&WitType::Bytes, json!("+/8=")),
        "unused bits are ignored"
    );
    assert_eq!(decode_value(&WitType::Bytes, json!("")), Ok(Val::List(Vec::new())));
    for (bad, message) in [
        ("+_8=", "invalid character at position 2"),
        ("+/8", "it must be padded with `=` to a multiple of four characters"),
        ("A", "the text is incomplete"),
        ("+/8=\n", "invalid character at position 5"),
    ] {
        assert_eq!(
            decode_error(&WitType::Bytes, json!(bad)),
            format!("/value: expected base64 with `+` and `/`: {message}")
        );
    }
}

#[test]
fn result_inside_a_value_is_tagged() {
    let ty = WitType::Result {
        ok: None,
        err: Some(Box::new(WitType::String)),
    };
    assert_eq!(encode_value(&ty, &Val::Result(Ok(None))), json!({"ok": null}));
    assert_eq!(decode_value(&ty, json!({"ok": null})), Ok(Val::Result(Ok(None))));
    assert_eq!(decode_error(&ty, json!({"ok": 1})), "/value/ok: expected null, found 1");
    assert_eq!(
        decode_error(&ty, json!({"fine": null})),
        "/value: expected `{\"ok\": …}` or `{\"err\": …}`, found the key `fine`"
    );
}

// attack: E1
#[test]
fn error_message_has_a_length_limit() {
    let long_text = "x".repeat(1 << 20);
    for (ty, bad) in [
        (WitType::Bool, json!(long_text)),
        (WitType::Enum(labels(&["red"])), json!(long_text)),
        (WitType::Record(vec![]), json!({long_text.as_str(): 1})),
        (
            WitType::Enum((0..9_000).map(|index| Label::new(&format!("n{index}"))).collect()),
            json!("x"),
        ),
    ] {
        assert!(decode_error(&ty, bad).len() < 1_000);
    }
}

/// Returns the output schema of a function that returns an entity whose method `describe` returns a type.
fn entity_schema(description: WitType) -> Value {
    let mut shape = Shape {
        functions: vec![echo_function(&WitType::Bool), echo_function(&WitType::Bool)],
        resources: vec![Resource {
            interface: None,
            name: "cart".to_owned(),
            docs: None,
            methods: vec![1],
            rebinding: toolwit_core::Rebinding::default(),
            is_chained: false,
            id_method: None,
            describe_method: Some(1),
        }],
        ..Shape::default()
    };
    shape.functions[0].result = Some(WitType::Own(ResourceIndex(0)));
    shape.functions[1].kind = FunctionKind::Method(ResourceIndex(0));
    shape.functions[1].result = Some(description);
    shape.generate_schemas();
    let schema = shape.functions[0].output_schema.as_deref();
    schema.cloned().unwrap_or_default()
}

#[test]
fn the_schema_of_an_entity_has_the_fields_of_its_description() {
    let record = WitType::Record(vec![
        field("total-price", WitType::U8),
        field("note", WitType::Option(Box::new(WitType::String))),
        field("id", WitType::Bool),
        field("error", WitType::Bool),
    ]);
    let schema = entity_schema(record);
    let properties = &schema["properties"];
    assert_eq!(properties["total_price"]["maximum"], 255, "{schema}");
    assert_eq!(properties["note"]["type"], json!(["string", "null"]));
    assert_eq!(properties["id"]["type"], "string", "the id of the host");
    assert_eq!(properties["error"]["type"], "boolean", "of the description");
    assert_eq!(schema["required"], json!(["type"]), "`describe` can fail");

    let text = entity_schema(WitType::String);
    assert_eq!(text["properties"]["description"], json!({"type": "string"}));
    assert_eq!(text["properties"]["error"], json!({"type": "string"}));
}
