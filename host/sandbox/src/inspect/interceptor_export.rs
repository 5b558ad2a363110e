//! Checks the functions of an exported `toolwit:plugin/interceptor`.

use crate::values::types::{Case, Field, Function, WitType};

/// The functions of `toolwit:plugin/interceptor`: `before` decides about a call, and `after` reviews its outcome.
pub(crate) const FUNCTIONS: [&str; 2] = ["before", "after"];

/// Returns whether both functions have the names and types of `toolwit:plugin/interceptor`.
pub(crate) fn has_interface_types(before: &Function, after: &Function) -> bool {
    let call = record(&[
        ("tool", WitType::String),
        ("name", WitType::String),
        ("arguments", WitType::String),
    ]);
    let artifact = record(&[("kind", WitType::String), ("value", WitType::String)]);
    let optional_text = || WitType::Option(Box::new(WitType::String));
    let outcome = record(&[
        ("for-llm", WitType::String),
        ("for-user", optional_text()),
        ("is-error", WitType::Bool),
        ("value", optional_text()),
        ("artifacts", WitType::List(Box::new(artifact))),
    ]);
    let decision = [
        ("continue", None),
        ("edit", Some(WitType::String)),
        ("deny", Some(WitType::String)),
    ];
    let review = [
        ("keep", None),
        ("replace", Some(outcome.clone())),
        ("withhold", Some(WitType::String)),
    ];
    before.name == FUNCTIONS[0]
        && after.name == FUNCTIONS[1]
        && has_params(before, &[("call", &call)])
        && has_params(after, &[("call", &call), ("outcome", &outcome)])
        && returns_variant(before, &decision)
        && returns_variant(after, &review)
}

fn record(fields: &[(&str, WitType)]) -> WitType {
    let field = |(name, ty): &(&str, WitType)| Field {
        label: crate::values::types::Label::new(name),
        ty: ty.clone(),
    };
    WitType::Record(fields.iter().map(field).collect())
}

fn has_params(function: &Function, expected: &[(&str, &WitType)]) -> bool {
    let is_equal = |(param, (name, ty)): (&Field, &(&str, &WitType))| param.label.wit == *name && param.ty == **ty;
    function.params.len() == expected.len() && function.params.iter().zip(expected).all(is_equal)
}

fn returns_variant(function: &Function, expected: &[(&str, Option<WitType>)]) -> bool {
    let is_equal = |(case, (name, ty)): (&Case, &(&str, Option<WitType>))| case.label.wit == *name && case.ty == *ty;
    matches!(&function.result, Some(WitType::Variant(cases))
        if cases.len() == expected.len() && cases.iter().zip(expected).all(is_equal))
}
