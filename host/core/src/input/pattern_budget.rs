//! The patterns of untrusted schemas that are checked.

use std::collections::HashMap;

use jsonschema::PatternOptions;
use serde_json::json;

use crate::limits::{SCHEMA_PATTERN_BYTES_MAX, SCHEMA_PATTERN_BYTES_SUM_MAX, SCHEMA_PATTERNS_MAX};

/// Limits of the compiled size of a pattern, in bytes. A schema is compiled with the smallest limit that suffices. If none
/// suffices, an untrusted schema is compiled with [`SCHEMA_PATTERN_BYTES_MAX`], and a trusted schema without a limit. The limit
/// determines how many steps each KiB of text costs.
pub(super) const SMALL_PATTERN_LIMITS: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];

/// Maximum size of a lazy DFA cache of a pattern, in bytes. Each thread has one cache for forward and one for reverse searches.
const PATTERN_CACHE_BYTES_MAX: usize = 64 << 10;

/// Decides which patterns of untrusted schemas are checked: those that match in linear time, up to [`SCHEMA_PATTERNS_MAX`] patterns
/// with together [`SCHEMA_PATTERN_BYTES_SUM_MAX`] bytes in compiled form.
#[derive(Debug, Default)]
pub(super) struct PatternBudget {
    patterns: usize,
    /// An upper limit of the compiled size of the admitted patterns, in bytes.
    bytes: usize,
    /// The sizes of the patterns that occurred, or `None` for a pattern that cannot be checked.
    sizes: HashMap<String, Option<usize>>,
}

impl PatternBudget {
    /// Returns whether values are matched against a pattern, and takes the pattern from the budget.
    pub(super) fn admits(&mut self, pattern: &str) -> bool {
        if self.patterns >= SCHEMA_PATTERNS_MAX {
            return false;
        }
        let size = match self.sizes.get(pattern) {
            Some(size) => *size,
            // Each pattern is compiled to learn its size.
            None if self.sizes.len() >= 4 * SCHEMA_PATTERNS_MAX => return false,
            None => {
                let size = compiled_bytes_max(pattern);
                self.sizes.insert(pattern.to_owned(), size);
                size
            }
        };
        let Some(bytes) = size.filter(|bytes| self.bytes + bytes <= SCHEMA_PATTERN_BYTES_SUM_MAX) else {
            return false;
        };
        self.patterns += 1;
        self.bytes += bytes;
        true
    }
}

/// Returns the options for patterns that must match in linear time, with a limit of the compiled size of each pattern.
pub(super) fn linear_patterns(bytes_max: usize) -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex()
        .dfa_size_limit(PATTERN_CACHE_BYTES_MAX)
        .size_limit(bytes_max)
}

/// Returns an upper limit of the compiled size of a pattern, in bytes. `None` if the pattern is not valid, is too large, or cannot
/// match in linear time.
fn compiled_bytes_max(pattern: &str) -> Option<usize> {
    let schema = json!({"pattern": pattern});
    let compiles = |bytes_max: &usize| {
        let options = jsonschema::options().with_pattern_options(linear_patterns(*bytes_max));
        options.build(&schema).is_ok()
    };
    // The last limit comes first, because most patterns that cannot be checked exceed every limit.
    Some(SCHEMA_PATTERN_BYTES_MAX).filter(compiles)?;
    let small = SMALL_PATTERN_LIMITS.into_iter().find(compiles);
    Some(small.unwrap_or(SCHEMA_PATTERN_BYTES_MAX))
}
