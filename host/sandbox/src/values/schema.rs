//! Generates the JSON Schema (draft 2020-12) of WIT types.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::tool_result::is_tool_result;
use super::types::{Case, Field, Function, FunctionKind, Label, Resource, ResourceIndex, Shape, WitType};
use toolwit_core::AVAILABLE_TOOLS;

/// Standard base64 with padding, as RFC 4648 section 4 defines it.
const BASE64_PATTERN: &str = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

/// The largest 32-bit float with the fewest digits, as the encoder writes it. The number is slightly above [`f32::MAX`], and
/// rounds to [`f32::MAX`].
const F32_MAX: f64 = 3.402_823_5e38;

/// Maximum number of JSON values in the schemas of a component that describe entities. Each place that returns an entity repeats its
/// description, so a small component could have schemas of gigabytes. Further schemas do not name the fields.
const DESCRIBED_PARTS_MAX: usize = 64 << 10;

/// Whether a schema is for parameters or results. Only the schemas of handles differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Input,
    Output,
}

impl Shape {
    /// Generates the schemas of all functions. Must be called after the docs have been added to the shape, because the schemas
    /// contain the docs.
    pub(crate) fn generate_schemas(&mut self) {
        let resources = std::mem::take(&mut self.resources);
        let descriptions: Vec<_> = resources
            .iter()
            .map(|resource| self.description_type(resource))
            .map(|ty| ty.map(|ty| Description::of(ty, &resources)))
            .collect();
        let described_parts_left = Cell::new(DESCRIBED_PARTS_MAX);
        for function in &mut self.functions {
            function.input_schema = Arc::new(match function.kind {
                FunctionKind::Command => command_input(),
                _ => SchemaGenerator {
                    resources: &resources,
                    descriptions: &descriptions,
                    described_parts_left: &described_parts_left,
                    direction: Direction::Input,
                }
                .object(&function.params),
            });
            function.returns_tool_result = function.outcome_types().0.is_some_and(is_tool_result);
            function.output_schema =
                output_schema(function, &resources, &descriptions, &described_parts_left).map(Arc::new);
        }
        self.resources = resources;
    }

    /// Returns the type of the value that the method `describe` of a resource returns, if the resource has this method.
    fn description_type(&self, resource: &Resource) -> Option<WitType> {
        let describe = self.functions.get(resource.describe_method?)?;
        describe.outcome_types().0.cloned()
    }
}

/// Returns the schema of a successful result, or `None` for a `tool-result`.
fn output_schema(
    function: &Function,
    resources: &[Resource],
    descriptions: &[Option<Description>],
    described_parts_left: &Cell<usize>,
) -> Option<Value> {
    if function.kind == FunctionKind::Command {
        return Some(command_output());
    }
    if function.returns_tool_result {
        // The model receives text, which has no schema.
        return None;
    }
    let generator = SchemaGenerator {
        resources,
        descriptions,
        described_parts_left,
        direction: Direction::Output,
    };
    Some(
        function
            .outcome_types()
            .0
            .map_or_else(|| json!({"type": "null"}), |ty| generator.schema_of(ty)),
    )
}

/// Returns the input schema of a command-line program.
fn command_input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "args": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Arguments, without the program's name."
            },
            "stdin": {"type": "string", "description": "Text on standard input."}
        },
        "additionalProperties": false
    })
}

/// Returns the output schema of a command-line program.
fn command_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "exit_status": {"type": "integer"},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"}
        },
        "required": ["exit_status", "stdout", "stderr"],
        "additionalProperties": false
    })
}

/// Generates the schemas of types, for one direction.
struct SchemaGenerator<'a> {
    resources: &'a [Resource],
    /// The types of the descriptions of the resources, in the same order.
    descriptions: &'a [Option<Description>],
    /// The number of JSON values that the descriptions in further schemas may have.
    described_parts_left: &'a Cell<usize>,
    direction: Direction,
}

/// The description of a resource.
struct Description {
    ty: WitType,
    /// The number of JSON values of its schema.
    parts: usize,
}

impl Description {
    fn of(ty: WitType, resources: &[Resource]) -> Self {
        let generator = SchemaGenerator {
            resources,
            descriptions: &[],
            described_parts_left: &Cell::new(0),
            direction: Direction::Output,
        };
        let parts = part_count(&generator.schema_of(&ty));
        Self { ty, parts }
    }
}

/// Returns the number of JSON values in a schema.
fn part_count(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => 1 + items.iter().map(part_count).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(part_count).sum::<usize>(),
        _ => 1,
    }
}

impl SchemaGenerator<'_> {
    fn schema_of(&self, ty: &WitType) -> Value {
        match ty {
            WitType::Bool => json!({"type": "boolean"}),
            WitType::S8 => integer(i8::MIN, i8::MAX),
            WitType::U8 => integer(u8::MIN, u8::MAX),
            WitType::S16 => integer(i16::MIN, i16::MAX),
            WitType::U16 => integer(u16::MIN, u16::MAX),
            WitType::S32 => integer(i32::MIN, i32::MAX),
            WitType::U32 => integer(u32::MIN, u32::MAX),
            // The pattern limits the number of digits. The decoder checks the range.
            WitType::S64 => {
                json!({"type": ["integer", "string"], "minimum": i64::MIN, "maximum": i64::MAX, "pattern": "^-?[0-9]{1,19}$"})
            }
            WitType::U64 => {
                json!({"type": ["integer", "string"], "minimum": 0, "maximum": u64::MAX, "pattern": "^[0-9]{1,20}$"})
            }
            WitType::F32 => json!({"anyOf": [
                {"type": "number", "minimum": -F32_MAX, "maximum": F32_MAX},
                {"enum": ["NaN", "Infinity", "-Infinity"]}
            ]}),
            WitType::F64 => json!({"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}),
            WitType::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
            WitType::String => json!({"type": "string"}),
            WitType::Bytes => json!({"type": "string", "contentEncoding": "base64", "pattern": BASE64_PATTERN}),
            WitType::List(item) => array_of(self.schema_of(item)),
            WitType::Tuple(items) => schema_with([
                ("type", json!("array")),
                ("prefixItems", items.iter().map(|item| self.schema_of(item)).collect()),
                ("items", json!(false)),
                ("minItems", json!(items.len())),
            ]),
            WitType::Record(fields) => self.object(fields),
            WitType::Variant(cases) => schema_with([("oneOf", cases.iter().map(|case| self.case(case)).collect())]),
            WitType::Enum(labels) => with_label_docs(json!({"type": "string", "enum": json_names(labels)}), labels),
            WitType::Flags(labels) => with_label_docs(
                json!({"type": "array", "items": {"type": "string", "enum": json_names(labels)}, "uniqueItems": true}),
                labels,
            ),
            WitType::Option(inner) => self.option(inner),
            WitType::Result { ok, err } => {
                let result_case = |name: &str, ty: &Option<Box<WitType>>| {
                    tagged(
                        name,
                        ty.as_ref()
                            .map_or_else(|| json!({"type": "null"}), |ty| self.schema_of(ty)),
                    )
                };
                schema_with([(
                    "oneOf",
                    Value::Array(vec![result_case("ok", ok), result_case("err", err)]),
                )])
            }
            WitType::Stream(item) if **item == WitType::U8 => {
                json!({"type": "string", "description": "Text, or a data URL of bytes that are not UTF-8."})
            }
            WitType::Stream(item) => array_of(self.schema_of(item)),
            WitType::Future(payload) => payload
                .as_ref()
                .map_or_else(|| json!({"type": "null"}), |payload| self.schema_of(payload)),
            WitType::Own(index) | WitType::Borrow(index) => self.handle(*index),
        }
    }

    fn object(&self, fields: &[Field]) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for Field { label, ty } in fields {
            properties.insert(label.json.clone(), with_docs(self.schema_of(ty), label.docs.as_deref()));
            if !matches!(ty, WitType::Option(_)) {
                required.push(label.json.clone());
            }
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        schema.insert("additionalProperties".to_owned(), json!(false));
        Value::Object(schema)
    }

    fn case(&self, case: &Case) -> Value {
        let name = &case.label.json;
        let schema = match &case.ty {
            Some(ty) => tagged(name, self.schema_of(ty)),
            None => json!({"const": name}),
        };
        with_docs(schema, case.label.docs.as_deref())
    }

    fn option(&self, inner: &WitType) -> Value {
        if inner.encodes_null() {
            return or_null(tagged("some", self.schema_of(inner)));
        }
        match self.schema_of(inner) {
            // The short form is `"type": ["…", "null"]`. Models follow this form best. A schema with `enum` cannot have this
            // form, because its `enum` would also have to list `null`.
            Value::Object(mut schema)
                if schema.get("type").is_some_and(Value::is_string) && !schema.contains_key("enum") =>
            {
                let ty = schema["type"].take();
                schema.insert("type".to_owned(), Value::Array(vec![ty, json!("null")]));
                Value::Object(schema)
            }
            schema => or_null(schema),
        }
    }

    fn handle(&self, index: ResourceIndex) -> Value {
        let name = self.resources[index.0].json_name();
        match self.direction {
            Direction::Input => json!({"type": "string", "description": format!("The id of a `{name}`.")}),
            Direction::Output => self.entity(&name, self.take_description(index)),
        }
    }

    /// Returns the type of an entity's description, unless the descriptions in the schemas of the component are too large already.
    fn take_description(&self, index: ResourceIndex) -> Option<&WitType> {
        let description = self.descriptions.get(index.0)?.as_ref()?;
        let left = self.described_parts_left.get().checked_sub(description.parts)?;
        self.described_parts_left.set(left);
        Some(&description.ty)
    }

    /// Returns the schema of an entity: what the host writes, and the fields of its description. Clients with types drop
    /// properties that the schema does not name.
    fn entity(&self, name: &str, description: Option<&WitType>) -> Value {
        let mut properties = Map::from_iter([
            ("type".to_owned(), json!({"const": name})),
            ("id".to_owned(), json!({"type": "string"})),
        ]);
        match description {
            Some(WitType::Record(fields)) => {
                for Field { label, ty } in fields {
                    let schema = || with_docs(self.schema_of(ty), label.docs.as_deref());
                    // The host writes its own values into fields of the same names.
                    properties.entry(label.json.clone()).or_insert_with(schema);
                }
            }
            Some(ty) => {
                properties.insert("description".to_owned(), self.schema_of(ty));
            }
            None => {}
        }
        properties.insert(
            AVAILABLE_TOOLS.to_owned(),
            json!({"type": "array", "items": {"type": "string"}}),
        );
        // A resource that cannot become an entity has an `error` instead of an `id`.
        let error = || json!({"type": "string"});
        properties.entry("error").or_insert_with(error);
        schema_with([
            ("type", json!("object")),
            ("properties", Value::Object(properties)),
            ("required", json!(["type"])),
        ])
    }
}

/// Returns a schema with these keywords. Moves the values of the keywords, because `json!` would copy nested schemas at each
/// level.
fn schema_with<const N: usize>(keywords: [(&str, Value); N]) -> Value {
    let keywords = keywords.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(keywords.collect())
}

fn array_of(items: Value) -> Value {
    schema_with([("type", json!("array")), ("items", items)])
}

fn or_null(schema: Value) -> Value {
    schema_with([("anyOf", Value::Array(vec![schema, json!({"type": "null"})]))])
}

fn integer(minimum: impl Into<i64>, maximum: impl Into<i64>) -> Value {
    json!({"type": "integer", "minimum": minimum.into(), "maximum": maximum.into()})
}

fn json_names(labels: &[Label]) -> Vec<&str> {
    labels.iter().map(|label| label.json.as_str()).collect()
}

/// Returns the schema of an object with one property, for a case with a payload.
fn tagged(name: &str, payload: Value) -> Value {
    let properties = Value::Object(Map::from_iter([(name.to_owned(), payload)]));
    schema_with([
        ("type", json!("object")),
        ("properties", properties),
        ("required", json!([name])),
        ("additionalProperties", json!(false)),
    ])
}

/// Adds docs to a schema, before the schema's own description.
fn with_docs(mut schema: Value, docs: Option<&str>) -> Value {
    if let (Value::Object(fields), Some(docs)) = (&mut schema, docs) {
        let description = match fields.get("description").and_then(Value::as_str) {
            Some(description) => format!("{docs}\n{description}"),
            None => docs.to_owned(),
        };
        fields.insert("description".to_owned(), json!(description));
    }
    schema
}

/// Adds the docs of labels to a schema's description.
fn with_label_docs(schema: Value, labels: &[Label]) -> Value {
    let docs: Vec<_> = labels
        .iter()
        .filter_map(|label| label.docs.as_ref().map(|docs| format!("`{}`: {docs}", label.json)))
        .collect();
    with_docs(schema, (!docs.is_empty()).then(|| docs.join("\n")).as_deref())
}
