//! Reads custom sections without decoding other sections.

use wasmparser::{Parser, Payload};

/// Returns the content of the last top-level custom section with this name. Returns `None` if the bytes have no such
/// section, or if the structure of the top-level sections is malformed.
#[must_use]
pub fn custom_section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut parser = Parser::new(0);
    let mut remaining = bytes;
    let mut content = None;
    loop {
        let wasmparser::Chunk::Parsed { consumed, payload } = parser.parse(remaining, true).ok()? else {
            return content;
        };
        remaining = remaining.get(consumed..)?;
        match payload {
            Payload::CustomSection(section) if section.name() == name => content = Some(section.data()),
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                // Skips the nested module or component, because its sections are not top-level sections.
                let length = unchecked_range.end.checked_sub(unchecked_range.start)?;
                remaining = remaining.get(length..)?;
            }
            Payload::End(_) => return content,
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn last_top_level_section_is_found() {
        let text = r#"(component (core module (@custom "a" "nested")) (@custom "a" "one") (@custom "b" "two") (@custom "a" "three"))"#;
        let component = wat::parse_str(text).unwrap();
        assert_eq!(custom_section(&component, "a"), Some(&b"three"[..]));
        assert_eq!(custom_section(&component, "b"), Some(&b"two"[..]));
        assert_eq!(custom_section(&component, "c"), None);
    }

    #[test]
    fn invalid_components_have_no_sections() {
        assert_eq!(custom_section(b"\0asm", "a"), None);
        let complete = wat::parse_str(r#"(component (core module (func)) (@custom "a" "x"))"#).unwrap();
        for length in 0..complete.len() {
            assert_eq!(custom_section(&complete[..length], "a"), None);
        }
    }
}
