//! The top-level custom sections of a component, as bytes.
//!
//! Only the outermost frame is read (section ids and sizes), so that a component passes through byte for byte but for
//! the sections that are replaced.

use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::{BinaryReader, Parser};

/// The length of a component's preamble: the magic number, the version and the layer.
const PREAMBLE_BYTES: usize = 8;

/// The id of a custom section.
const CUSTOM_SECTION: u8 = 0;

/// Why a custom section cannot be put into a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SectionError {
    /// The bytes are a core module, or no WebAssembly at all.
    #[error("the bytes are not a component")]
    NotAComponent,
    /// A section's frame is broken.
    #[error("the component is malformed at byte {offset}")]
    Malformed {
        /// Where reading stopped.
        offset: usize,
    },
}

/// Returns the component with its top-level custom sections `name` replaced by these, at the end.
/// Nothing else in the file changes.
///
/// # Errors
/// [`SectionError`] for bytes that are no well-formed component.
pub fn replace_custom_sections(component: &[u8], name: &str, contents: &[Vec<u8>]) -> Result<Vec<u8>, SectionError> {
    if !Parser::is_component(component) {
        return Err(SectionError::NotAComponent);
    }
    let added: usize = contents.iter().map(Vec::len).sum();
    let mut output = Vec::with_capacity(component.len() + added + 64);
    output.extend_from_slice(&component[..PREAMBLE_BYTES]);

    let mut reader = BinaryReader::new(&component[PREAMBLE_BYTES..], PREAMBLE_BYTES);
    while !reader.eof() {
        let start = reader.original_position();
        let is_named = next_section_is(&mut reader, name).map_err(|_| SectionError::Malformed { offset: start })?;
        if !is_named {
            output.extend_from_slice(&component[start..reader.original_position()]);
        }
    }
    for data in contents {
        CustomSection {
            name: name.into(),
            data: data.into(),
        }
        .append_to_component(&mut output);
    }
    Ok(output)
}

/// Steps over one section and says whether it is the custom section of that name.
fn next_section_is(reader: &mut BinaryReader<'_>, name: &str) -> wasmparser::Result<bool> {
    let id = reader.read_u8()?;
    let size = reader.read_var_u32()?;
    let body = reader.read_bytes(size as usize)?;
    if id != CUSTOM_SECTION {
        return Ok(false);
    }
    Ok(BinaryReader::new(body, 0).read_string()? == name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn component(text: &str) -> Vec<u8> {
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn a_section_is_appended_and_all_else_stays() {
        let original = component(r#"(component (@custom "other" "kept") (component))"#);
        let changed = replace_custom_sections(&original, "ours", &[b"data".to_vec()]).unwrap();
        assert!(changed.starts_with(&original));
        assert_eq!(
            changed,
            component(r#"(component (@custom "other" "kept") (component) (@custom "ours" "data"))"#)
        );
    }

    #[test]
    fn sections_of_the_name_are_replaced_wherever_they_stand() {
        let original = component(r#"(component (@custom "ours" "old") (component (@custom "ours" "nested")))"#);
        let changed = replace_custom_sections(&original, "ours", &[b"new".to_vec()]).unwrap();
        assert_eq!(
            changed,
            component(r#"(component (component (@custom "ours" "nested")) (@custom "ours" "new"))"#)
        );
    }

    #[test]
    fn what_is_no_component_is_refused() {
        for bytes in [
            b"".as_slice(),
            b"\0asm",
            b"plain text",
            &wat::parse_str("(module)").unwrap(),
        ] {
            assert_eq!(
                replace_custom_sections(bytes, "ours", &[]),
                Err(SectionError::NotAComponent)
            );
        }
    }

    #[test]
    fn every_cut_of_a_component_is_refused_or_ends_at_a_section() {
        let whole = component(r#"(component (@custom "a" "1") (type (func)) (@custom "b" "2"))"#);
        let cuts = (PREAMBLE_BYTES..whole.len()).filter(|cut| {
            let kept = replace_custom_sections(&whole[..*cut], "ours", &[]);
            kept.is_ok_and(|kept| kept == whole[..*cut])
        });
        assert_eq!(
            cuts.count(),
            3,
            "the cut after the preamble and those between the sections"
        );
    }
}
