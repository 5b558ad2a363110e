//! Reads the schemas of guests and servers.

use serde_json::Value;

use super::pattern_budget::PatternBudget;
use super::schema_repair::repaired;
use crate::limits::{SCHEMA_BYTES_MAX, SCHEMA_PARTS_SUM_MAX};
use crate::text::{parse_json, printable};

/// The maximum length of untrusted text in an error message, in characters.
const QUOTED_CHARS_MAX: usize = 200;

/// A reader of the schemas of an untrusted component, or of a group of tools of an untrusted server. Some limits apply to all
/// these schemas together.
#[derive(Debug, Default)]
pub struct UntrustedSchemas {
    /// The number of JSON values of all schemas.
    values: usize,
    patterns: PatternBudget,
}

impl UntrustedSchemas {
    /// Parses a schema. Keywords that cannot be checked are left out, so that the schema accepts more values: patterns that do not
    /// match in linear time, references to other documents, and values that do not have the form of their keyword. A recursive
    /// reference remains. [`InputValidator::of_untrusted`](crate::InputValidator::of_untrusted) can compile the schema.
    ///
    /// # Errors
    /// The reason, as the end of a sentence that begins with "the schema".
    pub fn read(&mut self, text: &str) -> Result<Value, String> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(format!("has {} bytes; at most {SCHEMA_BYTES_MAX} are read", text.len()));
        }
        let schema = parse_json(text).map_err(|error| format!("is not JSON: {}", excerpt(&error.to_string())))?;
        self.values = self.values.saturating_add(value_count(&schema));
        if self.values > SCHEMA_PARTS_SUM_MAX {
            return Err(format!(
                "exceeds a shared limit: all schemas together have more than {SCHEMA_PARTS_SUM_MAX} JSON values"
            ));
        }
        Ok(repaired(schema, &mut self.patterns))
    }
}

/// Returns the number of JSON values inside of a value, itself included.
fn value_count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(value_count).sum(),
        Value::Object(fields) => fields.values().map(value_count).sum(),
        _ => 0,
    }
}

/// Returns the beginning of untrusted text, in printable form, for an error message.
fn excerpt(text: &str) -> String {
    printable(text).chars().take(QUOTED_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
