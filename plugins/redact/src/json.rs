//! Masking the texts and numbers of JSON. Characters in JSON may be escaped, so the parsed values are masked.

use serde_json::Value;

use crate::masks::Masks;

/// Masks a text that may be JSON. Returns `None` if nothing changes.
#[must_use]
pub fn text_or_json(masks: &Masks, text: &str) -> Option<String> {
    let is_structure = text.trim_start().starts_with(['{', '[', '"']);
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) if is_structure => mask(masks, &mut value).then(|| value.to_string()),
        _ => {
            let clean = masks.mask_text(text);
            (clean != text).then(|| clean.into_owned())
        }
    }
}

/// Masks JSON. Returns `None` if nothing changes, and an error for text that is not JSON.
///
/// # Errors
/// If the text is not JSON.
pub fn json(masks: &Masks, text: &str) -> Result<Option<String>, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(mask(masks, &mut value).then(|| value.to_string()))
}

/// Masks the strings, keys and numbers of a value. Returns whether it changed.
fn mask(masks: &Masks, value: &mut Value) -> bool {
    let replacement = |text: &str| {
        let clean = masks.mask_text(text);
        (clean != text).then(|| clean.into_owned())
    };
    match value {
        Value::String(text) => match replacement(text) {
            Some(clean) => {
                *text = clean;
                true
            }
            None => false,
        },
        Value::Number(number) => match replacement(&number.to_string()) {
            Some(clean) => {
                *value = Value::String(clean);
                true
            }
            None => false,
        },
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |changed, item| mask(masks, item) | changed),
        Value::Object(fields) => {
            let mut changed = fields
                .values_mut()
                .fold(false, |changed, field| mask(masks, field) | changed);
            if fields.keys().any(|key| replacement(key).is_some()) {
                let entries = std::mem::take(fields).into_iter();
                *fields = entries
                    .map(|(key, field)| (masks.mask_text(&key).into_owned(), field))
                    .collect();
                changed = true;
            }
            changed
        }
        Value::Null | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_texts_numbers_and_keys_are_masked() {
        let masks = Masks::default();
        let text = r#"{"a": ["x ann\u0040b.example"], "c": 4111111111111111, "bob@b.example": 1}"#;
        assert_eq!(
            text_or_json(&masks, text).as_deref(),
            Some(r#"{"a":["x [email]"],"c":"[card]","[email]":1}"#)
        );
        assert_eq!(text_or_json(&masks, "ann@b.example {").as_deref(), Some("[email] {"));
        assert_eq!(text_or_json(&masks, r#"{"a": 1}"#), None);
        assert_eq!(text_or_json(&masks, "4111111111111111").as_deref(), Some("[card]"));
        assert_eq!(json(&masks, "4111111111111111"), Ok(Some("\"[card]\"".to_owned())));
        assert!(json(&masks, "{").is_err());
    }
}
