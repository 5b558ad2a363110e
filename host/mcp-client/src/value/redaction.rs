//! Redaction of secrets in the texts and values that a server sends.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use serde_json::Value;
use zeroize::Zeroizing;

use crate::failure::quoted;
use toolwit_core::Error;
use toolwit_core::text::printable;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// The minimum length of a secret that is redacted, in bytes. A shorter secret could occur in a result by chance.
const VALUE_BYTES_MIN: usize = 8;

/// The maximum number of OAuth tokens that are redacted. Only the newest are redacted, because they replaced the older
/// ones.
const TOKENS_MAX: usize = 16;

/// The secrets that must not appear in the results, errors and diagnostics of a server. Clones share the secrets.
#[derive(Clone, Default)]
pub(crate) struct Redaction(Arc<RwLock<Secrets>>);

#[derive(Default)]
struct Secrets {
    /// The secrets that are always redacted, such as those of the configuration.
    permanent: Vec<Zeroizing<String>>,
    /// The newest OAuth tokens, at most [`TOKENS_MAX`], the oldest first.
    tokens: VecDeque<Zeroizing<String>>,
}

impl Secrets {
    /// Returns all secrets, the longest first, because a shorter secret can be a part of a longer one.
    fn longest_first(&self) -> Vec<&str> {
        let secrets = self.permanent.iter().chain(&self.tokens);
        let mut secrets: Vec<&str> = secrets.map(|secret| secret.as_str()).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
    }

    fn has(&self, secret: &str) -> bool {
        let mut secrets = self.permanent.iter().chain(&self.tokens);
        secrets.any(|existing| existing.as_str() == secret)
    }
}

impl Redaction {
    /// Adds a secret that is always redacted, such as one of the configuration. A secret shorter than
    /// [`VALUE_BYTES_MIN`] is ignored.
    pub(crate) fn add(&self, secret: &str) {
        let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if secret.len() >= VALUE_BYTES_MIN && !secrets.has(secret) {
            secrets.permanent.push(Zeroizing::new(secret.to_owned()));
        }
    }

    /// Adds an OAuth token or an authorization code. A token shorter than [`VALUE_BYTES_MIN`] is ignored. Above
    /// [`TOKENS_MAX`] tokens, the oldest token is removed.
    pub(crate) fn add_token(&self, token: &str) {
        let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if token.len() < VALUE_BYTES_MIN || secrets.has(token) {
            return;
        }
        if secrets.tokens.len() == TOKENS_MAX {
            secrets.tokens.pop_front();
        }
        secrets.tokens.push_back(Zeroizing::new(token.to_owned()));
    }

    fn secrets(&self) -> RwLockReadGuard<'_, Secrets> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a text contains a secret.
    pub(crate) fn applies_to(&self, text: &str) -> bool {
        let secrets = self.secrets();
        let mut permanent_and_tokens = secrets.permanent.iter().chain(&secrets.tokens);
        permanent_and_tokens.any(|secret| text.contains(secret.as_str()))
    }

    /// Replaces all secrets in a text.
    pub(crate) fn redact_text(&self, text: String) -> String {
        if !self.applies_to(&text) {
            return text;
        }
        let secrets = self.secrets();
        let replaced = |text: String, secret: &str| text.replace(secret, REDACTED);
        secrets.longest_first().into_iter().fold(text, replaced)
    }

    /// Removes the control and invisible characters of untrusted text, and replaces its secrets.
    pub(crate) fn printable(&self, text: &str) -> String {
        // Invisible characters are removed first, because they could split a secret.
        self.redact_text(printable(text))
    }

    /// Returns the first `chars_max` characters of [`Redaction::printable`] text. Secrets are replaced before the text is
    /// cut, so that no part of a secret remains.
    pub(crate) fn beginning(&self, text: &str, chars_max: usize) -> String {
        self.printable(text).chars().take(chars_max).collect()
    }

    /// Returns the beginning of untrusted text for an error, without secrets; see [`quoted`].
    pub(crate) fn quoted(&self, text: &str) -> String {
        quoted(&self.printable(text))
    }

    /// Removes a partial secret at the start of a text whose beginning was cut off: the text can start with the last
    /// characters of a secret. A partial secret shorter than [`VALUE_BYTES_MIN`] remains.
    pub(crate) fn without_partial_secret_at_start<'t>(&self, text: &'t str) -> &'t str {
        let is_part = |part: &str, secret: &str| secret.len() > part.len() && secret.ends_with(part);
        let ends = text.char_indices().map(|(index, _)| index).chain([text.len()]);
        self.longest_partial_secret(ends, |end| &text[..end], is_part)
            .map_or(text, |part| &text[part.len()..])
    }

    /// Removes a partial secret at the end of a text whose end was cut off: the text can end with the first characters
    /// of a secret. A partial secret shorter than [`VALUE_BYTES_MIN`] remains.
    pub(crate) fn without_partial_secret_at_end<'t>(&self, text: &'t str) -> &'t str {
        let is_part = |part: &str, secret: &str| secret.len() > part.len() && secret.starts_with(part);
        let starts = text.char_indices().map(|(index, _)| index);
        self.longest_partial_secret(starts, |start| &text[start..], is_part)
            .map_or(text, |part| &text[..text.len() - part.len()])
    }

    /// Returns the longest partial secret of a text. `part_at` returns the candidate for a position in the text.
    /// `is_part(candidate, secret)` returns whether the candidate is a part of a secret.
    fn longest_partial_secret<'t>(
        &self,
        positions: impl Iterator<Item = usize>,
        part_at: impl Fn(usize) -> &'t str,
        is_part: impl Fn(&str, &str) -> bool,
    ) -> Option<&'t str> {
        let secrets = self.secrets();
        let longest_first = secrets.longest_first();
        let secret_bytes_max = longest_first.first().map_or(0, |secret| secret.len());
        let parts = positions
            .map(part_at)
            .filter(|part| (VALUE_BYTES_MIN..secret_bytes_max).contains(&part.len()));
        parts
            .filter(|part| longest_first.iter().any(|secret| is_part(part, secret)))
            .max_by_key(|part| part.len())
    }

    /// Replaces all secrets in the strings and field names of a JSON value.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.applies_to(text) => *text = self.redact_text(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| self.applies_to(name)) {
                    let renamed = std::mem::take(fields).into_iter();
                    *fields = renamed.map(|(name, field)| (self.redact_text(name), field)).collect();
                }
                fields.values_mut().for_each(|field| self.redact_value(field));
            }
            _ => {}
        }
    }

    /// Replaces all secrets in an error.
    pub(crate) fn redact_error(&self, error: Error) -> Error {
        if self.secrets().longest_first().is_empty() {
            return error;
        }
        error.redacted(&|text| self.redact_text(text.to_owned()), &|value| {
            self.redact_value(value)
        })
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.secrets().longest_first().len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_replaced_in_texts_values_and_names() {
        let redaction = Redaction::default();
        redaction.add("hunter22");
        redaction.add("Bearer hunter22");
        redaction.add("short");
        assert_eq!(redaction.redact_text("a hunter22 b".to_owned()), "a [redacted] b");
        let mut value = json!({"hunter22": ["Bearer hunter22", 1, "short"]});
        redaction.redact_value(&mut value);
        assert_eq!(value, json!({"[redacted]": ["[redacted]", 1, "short"]}));
        assert_eq!(format!("{redaction:?}"), "2 secrets");
    }

    // attack: G9
    #[test]
    fn no_cut_leaves_a_part_of_a_secret() {
        let secret = "sk-Zürich-0123456789";
        let redaction = Redaction::default();
        redaction.add(secret);
        let has_part = |text: &str| {
            let mut parts = secret.char_indices().map(|(index, _)| &secret[index..]);
            parts.any(|part| {
                let beginning: String = part.chars().take(VALUE_BYTES_MIN).collect();
                beginning.chars().count() == VALUE_BYTES_MIN && text.contains(&beginning)
            })
        };
        let text = format!("the key {secret} and {secret}");
        for length in 0..text.chars().count() {
            let before_cut: String = text.chars().take(length).collect();
            let after_cut: String = text.chars().skip(length).collect();
            assert!(!has_part(&redaction.beginning(&text, length)), "{length}");
            assert!(
                !has_part(&redaction.redact_text(redaction.without_partial_secret_at_end(&before_cut).to_owned())),
                "{before_cut}"
            );
            assert!(
                !has_part(&redaction.redact_text(redaction.without_partial_secret_at_start(&after_cut).to_owned())),
                "{after_cut}"
            );
        }
        assert_eq!(redaction.beginning(&text, 11), "the key [re");
        assert_eq!(
            redaction.without_partial_secret_at_end("the key sk-"),
            "the key sk-",
            "`sk-` is too short to be recognized"
        );
        assert_eq!(
            redaction.without_partial_secret_at_start("a harmless text"),
            "a harmless text"
        );
        let hidden = secret.replace('-', "\u{200b}-");
        assert_eq!(redaction.printable(&hidden), "[redacted]");
    }

    #[test]
    fn the_newest_tokens_and_all_configured_secrets_are_redacted() {
        let redaction = Redaction::default();
        redaction.add("configured");
        for number in 100..200 {
            redaction.clone().add_token(&format!("token-{number}"));
        }
        let text = redaction.redact_text("configured token-199 token-100".to_owned());
        assert_eq!(text, "[redacted] [redacted] token-100");
    }
}
