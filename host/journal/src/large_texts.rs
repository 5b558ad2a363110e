//! Large texts in the entries of a session. A text is stored once, and entries refer to it by its digest.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use toolwit_core::text::sha256;

/// Minimum length of a text that is stored separately, in bytes.
const LARGE_BYTES_MIN: usize = 1024;

/// The key of a reference to a large text: `{"$text": DIGEST}`.
///
/// An entry can contain an object that looks like a reference. So [`extract`] adds a `$` to the only key of an object if
/// the key is `$text`, `$$text` and so on. [`restore`] removes the added `$`.
const REFERENCE: &str = "$text";

/// Replaces the large texts in a value by references, and adds the texts to `texts` by their digests.
pub(crate) fn extract(value: Value, texts: &mut HashMap<String, String>) -> Value {
    match value {
        Value::String(text) if text.len() >= LARGE_BYTES_MIN => {
            let digest = sha256(&text);
            texts.insert(digest.clone(), text);
            json!({ REFERENCE: digest })
        }
        Value::Array(items) => items.into_iter().map(|item| extract(item, texts)).collect(),
        Value::Object(fields) => {
            let must_escape = only_key(&fields).is_some_and(looks_like_reference);
            let fields = fields.into_iter().map(|(key, field)| {
                let key = if must_escape { format!("${key}") } else { key };
                (key, extract(field, texts))
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// Replaces references by the texts that `find` returns for their digests.
///
/// # Errors
/// The first digest for which `find` returns `None`.
pub(crate) fn restore(value: Value, find: &mut dyn FnMut(&str) -> Option<String>) -> Result<Value, String> {
    match value {
        Value::Array(items) => items.into_iter().map(|item| restore(item, find)).collect(),
        Value::Object(fields) => {
            if let (Some(REFERENCE), Some(Value::String(digest))) = (only_key(&fields), fields.values().next()) {
                return find(digest).map(Value::String).ok_or_else(|| digest.clone());
            }
            let is_escaped = only_key(&fields).is_some_and(|key| key != REFERENCE && looks_like_reference(key));
            let fields = fields.into_iter().map(|(key, field)| {
                let key = if is_escaped { key[1..].to_owned() } else { key };
                Ok((key, restore(field, find)?))
            });
            fields.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        other => Ok(other),
    }
}

/// Returns whether a key is [`REFERENCE`], or [`REFERENCE`] with one or more additional `$` in front.
fn looks_like_reference(key: &str) -> bool {
    key.starts_with('$') && key.trim_start_matches('$') == &REFERENCE[1..]
}

fn only_key(fields: &Map<String, Value>) -> Option<&str> {
    let key = fields.keys().next()?;
    (fields.len() == 1).then_some(key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_are_restored_even_if_objects_in_them_look_like_references() {
        let large = "x".repeat(2000);
        let values = [
            json!({"a": [large, large], "b": {"$text": "short"}}),
            json!({"$$text": {"$text": {"$text": large}}, "c": null}),
            json!({"text": large}),
        ];
        for value in values {
            let mut texts = HashMap::new();
            let stored = extract(value.clone(), &mut texts);
            assert_eq!(texts.len(), 1, "a text is stored once");
            assert!(stored.to_string().len() < 400, "{stored}");
            assert_eq!(
                restore(stored, &mut |digest| texts.get(digest).cloned()).unwrap(),
                value
            );
        }
    }
}
