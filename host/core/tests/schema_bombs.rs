//! Schemas and arguments whose validation would take gigabytes or minutes. A program of its own, because it measures its memory.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use serde_json::{Map, Value, json};
use toolwit_core::{Arguments, ErrorKind, InputValidator, ToolDefinition, ToolId, UntrustedSchemas};

/// The memory that a validation may take in addition to its input, in KiB.
const GROWTH_KIB_MAX: u64 = 64 << 10;

/// The processor time of one validation, with a margin for a debug build. A release build takes a tenth.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Returns a value of `/proc/self/status` in KiB.
fn status_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Returns the processor time of this thread, which does not depend on how busy the machine is.
fn processor_time() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = schedule.split_whitespace().next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

/// Resets the peak of resident memory to its current value.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// A schema with a property `a`, read as that of a guest.
fn definition(schema: &Value) -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"a": schema}});
    let schema = UntrustedSchemas::default().read(&schema.to_string()).unwrap();
    ToolDefinition::new(ToolId::from_text("guest#bomb"), "bomb", "", schema)
}

/// Validates `{"a": value}`, and requires that it is refused within the limits. Returns the message.
fn refused(name: &str, schema: &Value, value: Value) -> String {
    let definition = definition(schema);
    let arguments = Arguments::from_iter([("a".to_owned(), value)]);
    for validator in [
        InputValidator::of_untrusted(&definition),
        InputValidator::of(&definition),
    ] {
        let arguments = arguments.clone();
        reset_peak();
        let (before, started) = (status_kib("VmRSS"), processor_time());
        let error = validator.unwrap().check(arguments).unwrap_err();
        let (took, grown) = (processor_time() - started, status_kib("VmHWM").saturating_sub(before));
        assert!(took < TIME_MAX, "{name}: {took:?}");
        assert!(grown < GROWTH_KIB_MAX, "{name}: {grown} KiB");
        let error = error.report();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{name}");
        assert!(error.message.len() < 2_000, "{name}");
    }
    let error = InputValidator::of_untrusted(&definition)
        .unwrap()
        .check(arguments)
        .unwrap_err();
    error.report().message.clone()
}

fn repeated(schema: &Value, count: usize) -> Value {
    json!({"allOf": vec![schema; count]})
}

fn members(count: usize) -> Value {
    Value::Object(
        (0..count)
            .map(|at| (format!("name-{at}"), json!(0)))
            .collect::<Map<_, _>>(),
    )
}

// attack: E8
#[test]
fn validation_of_hostile_schemas_and_arguments_takes_limited_time_and_memory() {
    let strings = repeated(&json!({"type": "string"}), 3_400);
    for elements in [1_000, 15_000, 1_000_000] {
        let message = refused("items", &json!({"items": strings}), Value::from(vec![0; elements]));
        assert!(message.contains("/a/0: 0 is not of type \"string\""), "{message}");
    }
    let valid = repeated(&json!({"type": "integer"}), 3_400);
    let message = refused("valid items", &json!({"items": valid}), Value::from(vec![0; 1_000_000]));
    assert!(message.contains("takes more than 16777216 steps"), "{message}");

    let patterns: Vec<Value> = (0..250).map(|at| json!({"pattern": format!("[a-z]+{at}$")})).collect();
    let names = json!({"propertyNames": {"allOf": patterns}});
    refused("names", &names, members(200));
    refused("names", &names, members(100_000));

    let linear = |count: usize, length: usize| {
        let pattern = |at| json!({"pattern": format!("([ab]{{0,{length}}}c|a){{0,2}}{at}$")});
        json!({"not": {"anyOf": (0..count).map(pattern).collect::<Vec<_>>()}})
    };
    let text = Value::from("ab".repeat(2_000_000));
    refused("patterns", &linear(200, 10), text.clone());
    let large = json!({"type": "object", "properties": {"a": linear(200, 400)}});
    let large = UntrustedSchemas::default().read(&large.to_string()).unwrap();
    assert!(
        large["properties"]["a"].get("not").is_none(),
        "more than 4 MiB of patterns in compiled form are left out"
    );
    let one = json!({"not": {"pattern": "(a|b|ab|ba){200}c$"}});
    refused("pattern", &one, text);

    let truths = json!({"items": {"allOf": vec![true; 8_000]}, "contains": false});
    refused("truths", &truths, Value::from(vec![0; 1_500_000]));

    let closed = repeated(&json!({"additionalProperties": false}), 2_000);
    refused("closed", &closed, members(200_000));
    let deep_name = json!({"n".repeat(1 << 20): 0});
    refused(
        "long path",
        &json!({"additionalProperties": {"allOf": vec![false; 8_000]}}),
        deep_name,
    );

    let options: Vec<Value> = (0..2_500).map(|at| json!([at, "x"])).collect();
    let lists = Value::from(vec![json!([-1, "x"]); 200_000]);
    refused("options", &json!({"items": {"enum": options}}), lists);

    let nested = (0..20).fold(json!(1), |value, _| json!([value]));
    let mut alike: Vec<Value> = (0..100_000)
        .map(|at| {
            (0..17).fold(json!([]), |value, bit| {
                if at >> bit & 1 == 1 {
                    json!([value])
                } else {
                    json!([[], value])
                }
            })
        })
        .collect();
    alike.extend([nested.clone(), nested]);
    refused("unique", &json!({"uniqueItems": true}), Value::from(alike));

    let branches = (0..6).fold(json!({"type": "string"}), |schema, _| json!({"anyOf": vec![schema; 3]}));
    refused("branches", &json!({"items": branches}), Value::from(vec![0; 100_000]));
}
