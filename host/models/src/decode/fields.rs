//! Lenient access to the fields of JSON objects.

use serde_json::Value;

/// Access to fields that a provider may omit, set to `null` or send with another type.
pub(crate) trait Fields {
    /// Returns the text of a field, or an empty text if the field is missing or is not a text.
    fn text(&self, key: &str) -> &str;
    /// Returns the elements of a field, or an empty slice if the field is missing or is not an array.
    fn items(&self, key: &str) -> &[Value];
    /// Returns the unsigned integer at a JSON pointer. Returns `None` if the value is missing, negative or not an integer.
    fn unsigned_at(&self, pointer: &str) -> Option<u64>;
    /// Returns the value of a field, or `None` if it is missing or `null`.
    fn non_null(&self, key: &str) -> Option<&Value>;
}

impl Fields for Value {
    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn items(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn unsigned_at(&self, pointer: &str) -> Option<u64> {
        self.pointer(pointer).and_then(Value::as_u64)
    }

    fn non_null(&self, key: &str) -> Option<&Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}
