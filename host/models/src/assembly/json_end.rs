//! Detects the end of a JSON object or array that arrives in pieces.

/// Detects whether an object or array that arrives in pieces is complete, in constant time per byte. The JSON is not
/// validated.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonEnd {
    /// The number of open braces and brackets.
    depth: usize,
    is_in_string: bool,
    /// Whether the previous byte is a backslash that escapes the next byte.
    is_escaped: bool,
    is_closed: bool,
}

impl JsonEnd {
    /// Adds a piece.
    pub(super) fn push(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.is_escaped {
                self.is_escaped = false;
            } else if self.is_in_string {
                self.is_escaped = byte == b'\\';
                self.is_in_string = byte != b'"';
            } else {
                match byte {
                    b'"' => self.is_in_string = true,
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        self.is_closed |= self.depth == 0;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns whether the outermost brace or bracket has been closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_closed_only_by_its_outermost_brace() {
        let mut end = JsonEnd::default();
        for piece in ["", " {\"a", "\\", "\"}\": [", "{}", "], \"b\": \"\\\\", "\""] {
            end.push(piece);
            assert!(!end.is_closed(), "{piece}");
        }
        end.push("} ");
        assert!(end.is_closed());
    }
}
