//! Custom sections, read without a look at the rest.

use wasmparser::{Parser, Payload};

/// Reads the last custom section of a name at the top level of a component. `None` also for bytes that are no component.
#[must_use]
pub fn custom_section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut parser = Parser::new(0);
    let mut rest = bytes;
    let mut found = None;
    loop {
        let wasmparser::Chunk::Parsed { consumed, payload } = parser.parse(rest, true).ok()? else {
            return found;
        };
        rest = rest.get(consumed..)?;
        match payload {
            Payload::CustomSection(section) if section.name() == name => found = Some(section.data()),
            Payload::ModuleSection { unchecked_range, .. } | Payload::ComponentSection { unchecked_range, .. } => {
                // What lies nested has sections of its own.
                let length = unchecked_range.end.checked_sub(unchecked_range.start)?;
                rest = rest.get(length..)?;
            }
            Payload::End(_) => return found,
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_last_section_of_the_component_itself_is_found() {
        let text = r#"(component (core module (@custom "a" "nested")) (@custom "a" "one") (@custom "b" "two") (@custom "a" "three"))"#;
        let component = wat::parse_str(text).unwrap();
        assert_eq!(custom_section(&component, "a"), Some(&b"three"[..]));
        assert_eq!(custom_section(&component, "b"), Some(&b"two"[..]));
        assert_eq!(custom_section(&component, "c"), None);
    }

    #[test]
    fn bytes_that_are_no_component_have_no_sections() {
        assert_eq!(custom_section(b"\0asm", "a"), None);
        let whole = wat::parse_str(r#"(component (core module (func)) (@custom "a" "x"))"#).unwrap();
        for length in 0..whole.len() {
            assert_eq!(custom_section(&whole[..length], "a"), None);
        }
    }
}
