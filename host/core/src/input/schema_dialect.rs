//! The dialects of JSON Schema, and the conversion of their differences.

use serde_json::{Map, Value, json};

use super::schema_keywords::{is_annotation, value_form};

/// The names of the dialects of draft 7 and earlier. In these dialects, a reference replaces all adjacent keywords.
const EARLY_DIALECTS: [&str; 4] = [
    "draft-03/schema",
    "draft-04/schema",
    "draft-06/schema",
    "draft-07/schema",
];

/// A dialect of JSON Schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Draft 7, also for a schema of an earlier draft.
    Draft7,
    Draft2019,
    /// Draft 2020-12, which the schema names.
    Draft2020,
    /// Draft 2020-12, for a schema without a dialect or with an unknown one.
    Default,
}

impl Dialect {
    /// Returns the dialect of a schema.
    pub(super) fn of(schema: &Value) -> Self {
        let name = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
        if EARLY_DIALECTS.iter().any(|early| name.contains(early)) {
            Self::Draft7
        } else if name.contains("draft/2019-09/schema") {
            Self::Draft2019
        } else if name.contains("draft/2020-12/schema") {
            Self::Draft2020
        } else {
            Self::Default
        }
    }

    /// Returns the value of `$schema`, or `None` for the default dialect.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Draft7 => Some("http://json-schema.org/draft-07/schema#"),
            Self::Draft2019 => Some("https://json-schema.org/draft/2019-09/schema"),
            Self::Draft2020 => Some("https://json-schema.org/draft/2020-12/schema"),
            Self::Default => None,
        }
    }

    /// Converts the keywords of a schema that this dialect does not define, or defines differently.
    pub(super) fn convert(self, keywords: &mut Map<String, Value>) {
        if keywords.get("$recursiveRef").is_some_and(|target| target == "#") {
            keywords.shift_remove("$recursiveRef");
            keywords.entry("$ref").or_insert(json!("#"));
        }
        if self == Self::Draft7 && keywords.get("$ref").is_some_and(Value::is_string) {
            keywords.retain(|keyword, _| {
                let is_kept = keyword.starts_with('$') || keyword == "definitions" || is_annotation(keyword);
                is_kept || value_form(keyword).is_none()
            });
        }
        for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            convert_exclusive(keywords, exclusive, inclusive);
        }
        if matches!(self, Self::Draft2020 | Self::Default) && keywords.get("items").is_some_and(Value::is_array) {
            let items = keywords.shift_remove("items").unwrap_or_default();
            if let Some(additional) = keywords.shift_remove("additionalItems") {
                keywords.insert("items".to_owned(), additional);
            }
            if items.as_array().is_some_and(|items| !items.is_empty()) {
                keywords.entry("prefixItems").or_insert(items);
            }
        }
    }
}

/// Converts the flag with which draft 4 makes a limit exclusive.
fn convert_exclusive(keywords: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
    let Some(Value::Bool(is_exclusive)) = keywords.get(exclusive).cloned() else {
        return;
    };
    keywords.shift_remove(exclusive);
    if is_exclusive && let Some(limit) = keywords.get(inclusive).filter(|limit| limit.is_number()).cloned() {
        keywords.shift_remove(inclusive);
        keywords.insert(exclusive.to_owned(), limit);
    }
}
