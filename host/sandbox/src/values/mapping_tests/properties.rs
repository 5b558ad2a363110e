//! Properties of the mapping that are tested with generated types and values.

use super::*;

/// Generates types of limited size, without handles, streams and futures.
fn types() -> impl Strategy<Value = WitType> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            WitType::Bool,
            WitType::S8,
            WitType::U8,
            WitType::S16,
            WitType::U16,
            WitType::S32,
            WitType::U32,
            WitType::S64,
            WitType::U64,
            WitType::F32,
            WitType::F64,
            WitType::Char,
            WitType::String,
            WitType::Bytes,
        ]),
        (1..5_usize).prop_map(|count| WitType::Enum(numbered_labels("case", count))),
        (1..40_usize).prop_map(|count| WitType::Flags(numbered_labels("flag", count))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let members = prop::collection::vec(inner.clone(), 1..4);
        let payload = prop::option::of(inner.clone());
        let cases = prop::collection::vec(payload.clone(), 1..4);
        prop_oneof![
            inner
                .clone()
                .prop_filter("`list<u8>` is `Bytes`", |ty| *ty != WitType::U8)
                .prop_map(list),
            inner.prop_map(option),
            members.clone().prop_map(WitType::Tuple),
            members.prop_map(|types| {
                let names = numbered_labels("the-field", types.len()).into_iter();
                WitType::Record(names.zip(types).map(|(label, ty)| Field { label, ty }).collect())
            }),
            cases.prop_map(|types| {
                let names = numbered_labels("a-case", types.len()).into_iter();
                WitType::Variant(names.zip(types).map(|(label, ty)| Case { label, ty }).collect())
            }),
            (payload.clone(), payload).prop_map(|(ok, err)| WitType::Result {
                ok: ok.map(Box::new),
                err: err.map(Box::new),
            }),
        ]
    })
}

fn numbered_labels(name: &str, count: usize) -> Vec<Label> {
    (0..count).map(|index| Label::new(&format!("{name}-{index}"))).collect()
}

/// Generates the values of a type, as a guest can return them.
fn values(ty: &WitType) -> BoxedStrategy<Val> {
    match ty {
        WitType::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        WitType::S8 => any::<i8>().prop_map(Val::S8).boxed(),
        WitType::U8 => any::<u8>().prop_map(Val::U8).boxed(),
        WitType::S16 => any::<i16>().prop_map(Val::S16).boxed(),
        WitType::U16 => any::<u16>().prop_map(Val::U16).boxed(),
        WitType::S32 => any::<i32>().prop_map(Val::S32).boxed(),
        WitType::U32 => any::<u32>().prop_map(Val::U32).boxed(),
        WitType::S64 => any_or_edge(
            any::<i64>(),
            &[i64::MIN, -(1 << 53) - 1, -(1 << 53), (1 << 53) + 1, i64::MAX],
        )
        .prop_map(Val::S64)
        .boxed(),
        WitType::U64 => any_or_edge(any::<u64>(), &[1 << 53, (1 << 53) + 1, u64::MAX])
            .prop_map(Val::U64)
            .boxed(),
        WitType::F32 => any_or_edge(
            prop::num::f32::ANY,
            &[
                f32::MAX,
                f32::MIN,
                f32::MIN_POSITIVE,
                -0.0,
                f32::NAN,
                f32::INFINITY,
                0.1,
            ],
        )
        .prop_map(Val::Float32)
        .boxed(),
        WitType::F64 => any_or_edge(
            prop::num::f64::ANY,
            &[f64::MAX, f64::MIN, 5e-324, -0.0, f64::NAN, f64::NEG_INFINITY, 0.1 + 0.2],
        )
        .prop_map(Val::Float64)
        .boxed(),
        WitType::Char => any::<char>().prop_map(Val::Char).boxed(),
        WitType::String => any::<String>().prop_map(Val::String).boxed(),
        WitType::Bytes => prop::collection::vec(any::<u8>().prop_map(Val::U8), 0..9)
            .prop_map(Val::List)
            .boxed(),
        WitType::List(item) => prop::collection::vec(values(item), 0..3).prop_map(Val::List).boxed(),
        WitType::Tuple(items) => items
            .iter()
            .map(values)
            .collect::<Vec<_>>()
            .prop_map(Val::Tuple)
            .boxed(),
        WitType::Record(fields) => {
            let names: Vec<_> = fields.iter().map(|field| field.label.wit.clone()).collect();
            let field_values: Vec<_> = fields.iter().map(|field| values(&field.ty)).collect();
            field_values
                .prop_map(move |values| Val::Record(names.iter().cloned().zip(values).collect()))
                .boxed()
        }
        WitType::Variant(cases) => one_of(cases.iter().map(|case| {
            let name = case.label.wit.clone();
            payload(case.ty.as_ref())
                .prop_map(move |payload| Val::Variant(name.clone(), payload))
                .boxed()
        })),
        WitType::Enum(names) => one_of(names.iter().map(|label| Just(Val::Enum(label.wit.clone())).boxed())),
        WitType::Flags(names) => {
            let names: Vec<_> = names.iter().map(|label| label.wit.clone()).collect();
            let count = names.len();
            prop::sample::subsequence(names, 0..=count).prop_map(Val::Flags).boxed()
        }
        WitType::Option(inner) => prop::option::of(values(inner))
            .prop_map(|value| Val::Option(value.map(Box::new)))
            .boxed(),
        WitType::Result { ok, err } => prop_oneof![
            payload(ok.as_deref()).prop_map(|payload| Val::Result(Ok(payload))),
            payload(err.as_deref()).prop_map(|payload| Val::Result(Err(payload))),
        ]
        .boxed(),
        WitType::Own(_) | WitType::Borrow(_) | WitType::Stream(_) | WitType::Future(_) => {
            unreachable!("`types` generates no handles, streams or futures")
        }
    }
}

fn payload(ty: Option<&WitType>) -> BoxedStrategy<Option<Box<Val>>> {
    match ty {
        Some(ty) => values(ty).prop_map(|value| Some(Box::new(value))).boxed(),
        None => Just(None).boxed(),
    }
}

/// Generates any value, or one of `edges` with a probability of a quarter.
fn any_or_edge<T: std::fmt::Debug + Copy + 'static>(
    any: impl Strategy<Value = T> + 'static,
    edges: &[T],
) -> BoxedStrategy<T> {
    prop_oneof![3 => any, 1 => prop::sample::select(edges.to_vec())].boxed()
}

fn one_of<T: std::fmt::Debug + 'static>(strategies: impl Iterator<Item = BoxedStrategy<T>>) -> BoxedStrategy<T> {
    prop::strategy::Union::new(strategies).boxed()
}

/// Generates JSON that the input schema of a type allows.
fn inputs(ty: &WitType) -> BoxedStrategy<Value> {
    let integer = |min: i64, max: i64| {
        prop_oneof![
            (min..=max).prop_map(|number| json!(number)),
            (min..=max).prop_map(|number| json!(number as f64)),
            prop::sample::select(vec![json!(min), json!(max)]),
        ]
        .boxed()
    };
    match ty {
        WitType::Bool => any::<bool>().prop_map(|value| json!(value)).boxed(),
        WitType::S8 => integer(i8::MIN.into(), i8::MAX.into()),
        WitType::U8 => integer(u8::MIN.into(), u8::MAX.into()),
        WitType::S16 => integer(i16::MIN.into(), i16::MAX.into()),
        WitType::U16 => integer(u16::MIN.into(), u16::MAX.into()),
        WitType::S32 => integer(i32::MIN.into(), i32::MAX.into()),
        WitType::U32 => integer(u32::MIN.into(), u32::MAX.into()),
        WitType::S64 => any_or_edge(any::<i64>(), &[i64::MIN, i64::MAX])
            .prop_flat_map(|number| prop::sample::select(vec![json!(number), json!(number.to_string())]))
            .boxed(),
        WitType::U64 => any_or_edge(any::<u64>(), &[0, u64::MAX])
            .prop_flat_map(|number| prop::sample::select(vec![json!(number), json!(number.to_string())]))
            .boxed(),
        WitType::F32 => prop_oneof![
            (f32::MIN..f32::MAX).prop_map(|number| json!(f64::from(number))),
            prop::sample::select(vec![
                json!("NaN"),
                json!("Infinity"),
                json!(3.402_823_5e38),
                json!(1e-60),
                json!(7)
            ]),
        ]
        .boxed(),
        WitType::F64 => prop_oneof![
            prop::num::f64::NORMAL.prop_map(|number| json!(number)),
            any::<i64>().prop_map(|number| json!(number)),
            Just(json!("-Infinity")),
        ]
        .boxed(),
        WitType::Char => any::<char>().prop_map(|value| json!(value.to_string())).boxed(),
        WitType::String => any::<String>().prop_map(|value| json!(value)).boxed(),
        WitType::Bytes => "([A-Za-z0-9+/]{4}){0,3}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
            .prop_map(|value| json!(value))
            .boxed(),
        WitType::List(item) => prop::collection::vec(inputs(item), 0..3).prop_map(Value::Array).boxed(),
        WitType::Tuple(items) => items
            .iter()
            .map(inputs)
            .collect::<Vec<_>>()
            .prop_map(Value::Array)
            .boxed(),
        WitType::Record(fields) => object(fields),
        WitType::Variant(cases) => one_of(cases.iter().map(|case| {
            let name = case.label.json.clone();
            match &case.ty {
                Some(ty) => inputs(ty)
                    .prop_map(move |payload| json!({name.clone(): payload}))
                    .boxed(),
                None => Just(json!(name)).boxed(),
            }
        })),
        WitType::Enum(names) => one_of(names.iter().map(|label| Just(json!(label.json)).boxed())),
        WitType::Flags(names) => {
            let names: Vec<_> = names.iter().map(|label| json!(label.json)).collect();
            let count = names.len();
            prop::sample::subsequence(names, 0..=count)
                .prop_shuffle()
                .prop_map(Value::Array)
                .boxed()
        }
        WitType::Option(inner) => {
            let encodes_null = inner.encodes_null();
            prop_oneof![
                Just(Value::Null),
                inputs(inner).prop_map(move |value| if encodes_null { json!({"some": value}) } else { value }),
            ]
            .boxed()
        }
        WitType::Result { ok, err } => {
            let result_case = |name: &'static str, ty: &Option<Box<WitType>>| {
                let payload = ty.as_deref().map_or_else(|| Just(Value::Null).boxed(), inputs);
                payload.prop_map(move |payload| json!({name: payload}))
            };
            prop_oneof![result_case("ok", ok), result_case("err", err)].boxed()
        }
        WitType::Own(_) | WitType::Borrow(_) | WitType::Stream(_) | WitType::Future(_) => {
            unreachable!("`types` generates no handles, streams or futures")
        }
    }
}

/// Generates objects with or without their optional properties, in any order.
fn object(fields: &[Field]) -> BoxedStrategy<Value> {
    let entries: Vec<_> = fields
        .iter()
        .map(|Field { label, ty }| {
            let name = label.json.clone();
            let entry = inputs(ty).prop_map(move |value| Some((name.clone(), value)));
            if matches!(ty, WitType::Option(_)) {
                prop_oneof![entry, Just(None)].boxed()
            } else {
                entry.boxed()
            }
        })
        .collect();
    entries
        .prop_shuffle()
        .prop_map(|entries| Value::Object(entries.into_iter().flatten().collect()))
        .boxed()
}

/// Generates arbitrary JSON.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9-]{0,9}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("the_field_0".to_owned()),
        Just("a_case_0".to_owned()),
        Just("ok".to_owned()),
        Just("some".to_owned()),
        any::<String>(),
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Generates a type, and a value for it with the strategy that `strategy_of` returns.
fn types_with<T: std::fmt::Debug + 'static>(
    strategy_of: impl Fn(&WitType) -> BoxedStrategy<T> + 'static,
) -> impl Strategy<Value = (WitType, T)> {
    types().prop_flat_map(move |ty| strategy_of(&ty).prop_map(move |value| (ty.clone(), value)))
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::draft202012::options()
        .build(schema)
        .unwrap_or_else(|error| panic!("{error}: {schema}"))
}

/// Serializes a value to text and parses the text.
fn through_text(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn schemas_are_valid(ty in types()) {
        let function = echo_function(&ty);
        for schema in [&function.input_schema, function.output_schema.as_ref().unwrap()] {
            prop_assert!(jsonschema::draft202012::meta::is_valid(schema), "{schema}");
        }
    }

    // attack: E4
    #[test]
    fn encoded_value_fits_the_output_schema_and_decodes_to_itself((ty, value) in types_with(values)) {
        let function = echo_function(&ty);
        let json = through_text(&encode_value(function.result.as_ref().unwrap(), &Val::Tuple(vec![value.clone()])));
        let validator = validator(function.output_schema.as_ref().unwrap());
        prop_assert!(validator.is_valid(&json), "{json} for {}", function.output_schema.unwrap());
        prop_assert_eq!(decode_value(&ty, json[0].clone()), Ok(value));
    }

    #[test]
    fn value_that_fits_the_input_schema_decodes((ty, value) in types_with(inputs)) {
        let function = echo_function(&ty);
        let arguments = through_text(&json!({"value": value}));
        prop_assert!(validator(&function.input_schema).is_valid(&arguments), "{arguments} for {}", function.input_schema);
        prop_assert!(decode_value(&ty, arguments["value"].clone()).is_ok(), "{:?}", decode_value(&ty, value));
    }

    // attack: E1
    #[test]
    fn any_json_is_decoded_or_refused_with_its_path((ty, value) in (types(), arbitrary_json())) {
        let is_valid = validator(&echo_function(&ty).input_schema).is_valid(&json!({"value": value}));
        match decode_value(&ty, value.clone()) {
            Ok(_) => {}
            Err(error) => {
                prop_assert!(error.starts_with("/value"), "{error}");
                // A schema cannot express two rules of the decoder: a number beyond 2^53 must not have a fraction or an
                // exponent, and an integer in decimal text must be in the range of its type.
                let is_beyond_schema = error.contains("without fraction or exponent") || error.contains("as decimal text");
                prop_assert!(!is_valid || is_beyond_schema, "{value} is valid and was refused: {error}");
            }
        }
    }
}
