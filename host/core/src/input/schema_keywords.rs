//! The keywords of JSON Schema, and the forms that their values must have.

use serde_json::Value;

/// The form that the value of a keyword must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    Text,
    Number,
    PositiveNumber,
    /// A non-negative integer.
    Count,
    Flag,
    /// The name of a type, or a list of such names.
    Types,
    /// A list of texts. Other items and duplicates are left out.
    Names,
    /// An object whose values are lists of texts.
    NameLists,
    /// A list of values of any type.
    Values,
    AnyValue,
    Schema,
    /// A schema, or a list of schemas.
    Items,
    /// A list of schemas that is not empty.
    Schemas,
    /// An object whose values are schemas.
    NamedSchemas,
    /// An object whose values are schemas or lists of texts.
    Dependencies,
}

const KEYWORDS: &[(&str, ValueForm)] = &[
    ("$comment", ValueForm::Text),
    ("$defs", ValueForm::NamedSchemas),
    ("$ref", ValueForm::Text),
    ("additionalItems", ValueForm::Schema),
    ("additionalProperties", ValueForm::Schema),
    ("allOf", ValueForm::Schemas),
    ("anyOf", ValueForm::Schemas),
    ("const", ValueForm::AnyValue),
    ("contains", ValueForm::Schema),
    ("contentEncoding", ValueForm::Text),
    ("contentMediaType", ValueForm::Text),
    ("contentSchema", ValueForm::Schema),
    ("default", ValueForm::AnyValue),
    ("definitions", ValueForm::NamedSchemas),
    ("dependencies", ValueForm::Dependencies),
    ("dependentRequired", ValueForm::NameLists),
    ("dependentSchemas", ValueForm::NamedSchemas),
    ("deprecated", ValueForm::Flag),
    ("description", ValueForm::Text),
    ("else", ValueForm::Schema),
    ("enum", ValueForm::Values),
    ("examples", ValueForm::Values),
    ("exclusiveMaximum", ValueForm::Number),
    ("exclusiveMinimum", ValueForm::Number),
    ("format", ValueForm::Text),
    ("if", ValueForm::Schema),
    ("items", ValueForm::Items),
    ("maxContains", ValueForm::Count),
    ("maxItems", ValueForm::Count),
    ("maxLength", ValueForm::Count),
    ("maxProperties", ValueForm::Count),
    ("maximum", ValueForm::Number),
    ("minContains", ValueForm::Count),
    ("minItems", ValueForm::Count),
    ("minLength", ValueForm::Count),
    ("minProperties", ValueForm::Count),
    ("minimum", ValueForm::Number),
    ("multipleOf", ValueForm::PositiveNumber),
    ("not", ValueForm::Schema),
    ("oneOf", ValueForm::Schemas),
    ("pattern", ValueForm::Text),
    ("patternProperties", ValueForm::NamedSchemas),
    ("prefixItems", ValueForm::Schemas),
    ("properties", ValueForm::NamedSchemas),
    ("propertyNames", ValueForm::Schema),
    ("readOnly", ValueForm::Flag),
    ("required", ValueForm::Names),
    ("then", ValueForm::Schema),
    ("title", ValueForm::Text),
    ("type", ValueForm::Types),
    ("uniqueItems", ValueForm::Flag),
    ("writeOnly", ValueForm::Flag),
];

/// Keywords that describe a value and do not restrict it.
const ANNOTATIONS: [&str; 9] = [
    "$comment",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
];

/// Keywords that change how references are resolved. They are left out if their value is a text: otherwise, they are the names
/// of properties.
const RESOLUTION_KEYWORDS: [&str; 8] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
];

/// Keywords that evaluate the adjacent keywords again. They are always left out, because each nested level doubles the work.
const DOUBLING_KEYWORDS: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Keywords whose values are data, not schemas.
const DATA_KEYWORDS: [&str; 5] = ["examples", "example", "default", "const", "enum"];

const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Returns the form of a keyword's value. `None` for a keyword that JSON Schema does not define.
pub(super) fn value_form(keyword: &str) -> Option<ValueForm> {
    KEYWORDS
        .iter()
        .find(|(name, _)| *name == keyword)
        .map(|(_, form)| *form)
}

/// Returns whether a keyword describes a value, and does not restrict it.
pub(super) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword)
}

/// Returns whether a keyword is never checked, whatever its value is.
pub(super) fn is_unchecked(keyword: &str, value: &Value) -> bool {
    DOUBLING_KEYWORDS.contains(&keyword)
        || RESOLUTION_KEYWORDS.contains(&keyword)
            && (value.is_string() || keyword == "$vocabulary" || value.is_boolean())
}

/// Returns whether a keyword that is never checked restricts a value, and does not only name a schema.
pub(super) fn is_restriction(keyword: &str) -> bool {
    DOUBLING_KEYWORDS.contains(&keyword) || matches!(keyword, "$dynamicRef" | "$recursiveRef")
}

/// Returns whether the value of a keyword is data, in which keywords have no meaning.
pub(super) fn has_data(keyword: &str) -> bool {
    DATA_KEYWORDS.contains(&keyword)
}

/// Returns whether the value of a keyword is an object with a schema for each of its names.
pub(super) fn has_named_schemas(keyword: &str) -> bool {
    matches!(
        value_form(keyword),
        Some(ValueForm::NamedSchemas | ValueForm::Dependencies)
    )
}

/// Returns whether a text is the name of a type.
pub(super) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}
