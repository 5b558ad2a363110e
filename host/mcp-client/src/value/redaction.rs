//! Redaction of secrets in what a server returns.

use std::fmt;

use serde_json::Value;
use zeroize::Zeroizing;

use toolwit_core::Error;

/// The replacement of a secret.
const REDACTED: &str = "[redacted]";

/// The minimum length of a value that is redacted, in bytes. Shorter texts occur in results by chance.
const VALUE_BYTES_MIN: usize = 8;

/// The secrets that a server received, which must not come back in its results, errors and diagnostics.
#[derive(Clone, Default)]
pub(crate) struct Redaction(Vec<Zeroizing<String>>);

impl Redaction {
    /// Adds a secret. The longest is replaced first, because another may be a part of it.
    pub(crate) fn add(&mut self, secret: &str) {
        if secret.len() >= VALUE_BYTES_MIN && !self.0.iter().any(|known| known.as_str() == secret) {
            self.0.push(Zeroizing::new(secret.to_owned()));
            self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        }
    }

    /// Returns whether a text contains a secret.
    pub(crate) fn applies_to(&self, text: &str) -> bool {
        self.0.iter().any(|secret| text.contains(secret.as_str()))
    }

    /// Replaces all secrets in a text.
    pub(crate) fn text(&self, text: String) -> String {
        if !self.applies_to(&text) {
            return text;
        }
        self.0
            .iter()
            .fold(text, |text, secret| text.replace(secret.as_str(), REDACTED))
    }

    /// Replaces all secrets in the texts and names of a value.
    pub(crate) fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.applies_to(text) => *text = self.text(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| self.applies_to(name)) {
                    let renamed = std::mem::take(fields).into_iter();
                    *fields = renamed.map(|(name, field)| (self.text(name), field)).collect();
                }
                fields.values_mut().for_each(|field| self.value(field));
            }
            _ => {}
        }
    }

    /// Replaces all secrets in an error.
    pub(crate) fn error(&self, error: Error) -> Error {
        if self.0.is_empty() {
            return error;
        }
        error.redacted(&|text| self.text(text.to_owned()), &|value| self.value(value))
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_replaced_in_texts_values_and_names() {
        let mut redaction = Redaction::default();
        redaction.add("hunter22");
        redaction.add("Bearer hunter22");
        redaction.add("short");
        assert_eq!(redaction.text("a hunter22 b".to_owned()), "a [redacted] b");
        let mut value = json!({"hunter22": ["Bearer hunter22", 1, "short"]});
        redaction.value(&mut value);
        assert_eq!(value, json!({"[redacted]": ["[redacted]", 1, "short"]}));
        assert_eq!(format!("{redaction:?}"), "2 secrets");
    }
}
