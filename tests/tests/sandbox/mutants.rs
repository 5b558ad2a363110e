//! Components with flipped bits, which may still be valid.

use serde_json::{Map, Value, json};
use toolwit::ErrorKind;
use toolwit::limits::LimitOverrides;
use toolwit_tests::{Conversation, Guests, component_of};

/// Distance between flipped bits. It is not a multiple of eight, so that every bit of a byte is covered.
const STRIDE: usize = 37;

/// Arguments that fit a schema.
fn arguments(schema: &Value) -> Value {
    let value = |schema: &Value| {
        if schema["type"] == "string" {
            json!("1")
        } else {
            json!(3)
        }
    };
    let properties = schema["properties"].as_object().unwrap().iter();
    let filled: Map<_, _> = properties.map(|(name, schema)| (name.clone(), value(schema))).collect();
    filled.into()
}

// attack: A1
#[tokio::test]
async fn component_with_a_flipped_bit_is_refused_or_runs_within_its_limits() {
    let original = component_of(include_str!("../../guests/wat/token.wat"));
    let guests = Guests::new();
    let limits = LimitOverrides::default()
        .with_fuel_max(300_000)
        .with_memory_bytes_max(2 << 20)
        .with_result_bytes_max(10_000);
    let mut completed = 0;
    for bit in (0..original.len() * 8).step_by(STRIDE) {
        let mut mutant = original.clone();
        mutant[bit / 8] ^= 1 << (bit % 8);
        let Ok(plugin) = guests.bytes("mutant", mutant).await else {
            continue;
        };
        let mut conversation = Conversation::over(&[&plugin]).limited(limits.clone());
        for tool in conversation.names() {
            let arguments = arguments(&conversation.tool(&tool).definition().input_schema);
            match conversation.call(&tool, arguments).await {
                Ok(_) => completed += 1,
                Err(error) => assert_ne!(error.kind, ErrorKind::Internal, "bit {bit}, `{tool}`: {error:#?}"),
            }
        }
    }
    assert!(completed > 100, "{completed} calls were completed");
}
