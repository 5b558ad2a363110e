//! The nesting depth of JSON text.

/// Replaces the lists and objects of JSON text that are deeper than `depth_max` by `null`. Returns `None` if there are none.
///
/// A parser of JSON refuses text that is too deep as a whole, although often only a part of it is.
pub(super) fn without_deep_values(text: &[u8], depth_max: usize) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut has_deep_values = false;
    let (mut depth, mut is_in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text {
        let mut is_kept = depth <= depth_max;
        if is_in_string {
            is_in_string = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
        } else {
            match byte {
                b'"' => is_in_string = true,
                b'[' | b'{' => {
                    depth += 1;
                    if depth == depth_max + 1 {
                        kept.extend_from_slice(b"null");
                        has_deep_values = true;
                    }
                    is_kept = depth <= depth_max;
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if is_kept {
            kept.push(*byte);
        }
    }
    has_deep_values.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, depth_max: usize) -> Option<String> {
        let kept = without_deep_values(text.as_bytes(), depth_max);
        kept.map(|kept| String::from_utf8_lossy(&kept).into_owned())
    }

    #[test]
    fn values_below_a_depth_become_null() {
        assert_eq!(
            cut(r#"{"a": [1, {"b": "]}"}], "c": [[]]}"#, 2).as_deref(),
            Some(r#"{"a": [1, null], "c": [null]}"#)
        );
        assert_eq!(cut(r#"{"a": [1], "b": "[[[\"[["}"#, 2), None);
        assert_eq!(cut(&"[".repeat(1_000), 3).as_deref(), Some("[[[null"));
    }
}
