//! Replaces top-level custom sections.
//!
//! Only the ids and sizes of sections and the names of custom sections are decoded. Sections that are not replaced are
//! copied byte for byte.

use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::{BinaryReader, Parser};

/// The length of a component's preamble in bytes: the magic number, the version and the layer.
const PREAMBLE_BYTES: usize = 8;

/// The id of a custom section.
const CUSTOM_SECTION: u8 = 0;

/// The error of replacing a custom section.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SectionError {
    /// The bytes are a core module, or not WebAssembly.
    #[error("the bytes are not a component")]
    NotAComponent,
    /// The size of a section, or the name of a custom section, is invalid.
    #[error("the component is malformed at byte {offset}")]
    Malformed {
        /// The offset of the invalid section.
        offset: usize,
    },
}

/// Replaces the top-level custom sections with this name by new ones, one for each of `contents`.
///
/// Returns the changed component, with the new sections at its end. All other bytes stay the same.
///
/// # Errors
/// [`SectionError`] if the bytes are not a component, or its top-level sections cannot be read.
pub fn replace_custom_sections(component: &[u8], name: &str, contents: &[Vec<u8>]) -> Result<Vec<u8>, SectionError> {
    if !Parser::is_component(component) {
        return Err(SectionError::NotAComponent);
    }
    let added_bytes: usize = contents.iter().map(Vec::len).sum();
    // 64 bytes are usually enough for the headers of the new sections.
    let mut output = Vec::with_capacity(component.len() + added_bytes + 64);
    output.extend_from_slice(&component[..PREAMBLE_BYTES]);

    let mut reader = BinaryReader::new(&component[PREAMBLE_BYTES..], PREAMBLE_BYTES);
    while !reader.eof() {
        let start = reader.original_position();
        let has_name = skip_section(&mut reader, name).map_err(|_| SectionError::Malformed { offset: start })?;
        if !has_name {
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

/// Skips one section. Returns whether it is a custom section with this name.
fn skip_section(reader: &mut BinaryReader<'_>, name: &str) -> wasmparser::Result<bool> {
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
    fn section_is_appended_and_other_bytes_stay() {
        let original = component(r#"(component (@custom "other" "other data") (component))"#);
        let changed = replace_custom_sections(&original, "ours", &[b"data".to_vec()]).unwrap();
        assert!(changed.starts_with(&original));
        assert_eq!(
            changed,
            component(r#"(component (@custom "other" "other data") (component) (@custom "ours" "data"))"#)
        );
    }

    #[test]
    fn sections_are_replaced_at_any_position() {
        let original = component(r#"(component (@custom "ours" "old") (component (@custom "ours" "nested")))"#);
        let changed = replace_custom_sections(&original, "ours", &[b"new".to_vec()]).unwrap();
        assert_eq!(
            changed,
            component(r#"(component (component (@custom "ours" "nested")) (@custom "ours" "new"))"#)
        );
    }

    #[test]
    fn invalid_components_are_rejected() {
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
    fn component_that_is_cut_inside_a_section_is_refused() {
        let complete = component(r#"(component (@custom "a" "1") (type (func)) (@custom "b" "2"))"#);
        let accepted_cuts = (PREAMBLE_BYTES..complete.len()).filter(|cut| {
            let result = replace_custom_sections(&complete[..*cut], "ours", &[]);
            result.is_ok_and(|output| output == complete[..*cut])
        });
        assert_eq!(
            accepted_cuts.count(),
            3,
            "the cut after the preamble and the two cuts between sections"
        );
    }
}
