//! Tests of the mapping between WIT and JSON: schema, decoder and encoder must agree.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wasmtime::component::Val;

use super::decode::{NoHandles, decode_arguments};
use super::encode::encode;
use super::types::{Case, Field, Function, FunctionKind, Label, Shape, WitType};

mod known_answers;
mod properties;

/// Creates a function that takes a `value` of a type and returns a tuple with one value of that type.
fn echo_function(ty: &WitType) -> Function {
    let mut shape = Shape {
        functions: vec![Function {
            interface: None,
            export: "echo".to_owned(),
            kind: FunctionKind::Free,
            name: "echo".to_owned(),
            params: vec![Field {
                label: Label::new("value"),
                ty: ty.clone(),
            }],
            // The type is in a tuple, because a `result` at the top level would decide whether the call succeeds.
            result: Some(WitType::Tuple(vec![ty.clone()])),
            returns_tool_result: false,
            docs: None,
            effect: None,
            input_schema: Default::default(),
            output_schema: None,
        }],
        ..Shape::default()
    };
    shape.generate_schemas();
    shape.functions.remove(0)
}

fn arguments(value: Value) -> Map<String, Value> {
    Map::from_iter([("value".to_owned(), value)])
}

/// Decodes the argument `value` of the echo function.
fn decode_value(ty: &WitType, value: Value) -> Result<Val, String> {
    let params = echo_function(ty).params;
    let values = decode_arguments(&params, &arguments(value), &mut NoHandles).map_err(|error| error.to_string())?;
    Ok(values.into_iter().next().unwrap())
}

fn encode_value(ty: &WitType, value: &Val) -> Value {
    encode(ty, value.clone(), &mut std::iter::empty()).unwrap()
}

fn labels(names: &[&str]) -> Vec<Label> {
    names.iter().map(|name| Label::new(name)).collect()
}

fn field(name: &str, ty: WitType) -> Field {
    Field {
        label: Label::new(name),
        ty,
    }
}

fn case(name: &str, ty: Option<WitType>) -> Case {
    Case {
        label: Label::new(name),
        ty,
    }
}

fn option(ty: WitType) -> WitType {
    WitType::Option(Box::new(ty))
}

fn list(ty: WitType) -> WitType {
    WitType::List(Box::new(ty))
}
