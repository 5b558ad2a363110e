//! References inside of a schema.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema_keywords::{has_data, has_named_schemas};

/// Returns the JSON pointer of a reference's target, or `None` if the reference does not consist of a pointer: its target is then
/// in another document, or is named by an anchor.
pub(super) fn target_pointer(reference: &str) -> Option<String> {
    let pointer = percent_decoded(reference.strip_prefix('#')?)?;
    (pointer.is_empty() || pointer.starts_with('/')).then_some(pointer)
}

/// Decodes the characters of a text that are written as `%` and two hexadecimal digits. Returns `None` for an invalid sequence.
fn percent_decoded(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut decoded = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = (piece.get(..2)?, piece.get(2..)?);
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(decoded).ok()
}

/// Returns a text as one segment of a JSON pointer.
pub(super) fn pointer_segment(text: &str) -> String {
    text.replace('~', "~0").replace('/', "~1")
}

/// Returns the first segments of the targets of all references in a schema: the keywords of its root into which references point.
pub(super) fn referenced_keywords(schema: &Value) -> BTreeSet<String> {
    let mut keywords = BTreeSet::new();
    collect_referenced_keywords(schema, &mut keywords);
    keywords
}

fn collect_referenced_keywords(value: &Value, keywords: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_referenced_keywords(item, keywords)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(reference) if name == "$ref" => {
                        let pointer = target_pointer(reference).unwrap_or_default();
                        keywords.extend(pointer.split('/').nth(1).map(str::to_owned));
                    }
                    field => collect_referenced_keywords(field, keywords),
                }
            }
        }
        _ => {}
    }
}

/// Calls `visit` for each `$ref` of a schema that is a keyword, not data or the name of a property.
pub(super) fn for_each_reference(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_reference(item, visit)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    field @ Value::String(_) if name == "$ref" => visit(field),
                    Value::Object(schemas) if has_named_schemas(name) => {
                        schemas
                            .values_mut()
                            .for_each(|schema| for_each_reference(schema, visit));
                    }
                    field if !has_data(name) => for_each_reference(field, visit),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_to_a_pointer_has_a_target() {
        let target = |reference: &str| target_pointer(reference);
        assert_eq!(target("#").as_deref(), Some(""));
        assert_eq!(target("#/$defs/Page%3CItem%3E").as_deref(), Some("/$defs/Page<Item>"));
        for reference in [
            "",
            "#anchor",
            "other.json#/a",
            "https://example.com/#/a",
            "#/a%zz",
            "#/%e9",
        ] {
            assert_eq!(target(reference), None, "{reference}");
        }
    }
}
