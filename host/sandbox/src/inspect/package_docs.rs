//! The docs of functions from the custom section `package-docs`, which other toolchains write into components.
//!
//! Two formats exist: JSON after a byte `1`, in which each function is an object with `docs`, and plain JSON, in which each
//! function is a string. Both identify interfaces without their package, and do not relate types to the functions that use
//! them, so only the docs of functions are read.

use serde_json::Value;

use super::docs::printable_docs;
use crate::values::types::{Function, Shape};
use toolwit_core::limits::{FUNCTION_DOCS_CHARS_MAX, WIT_BYTES_MAX};

/// The name of the custom section that `wit-component` writes into WIT packages.
pub(crate) const SECTION: &str = "package-docs";

/// Copies the docs to the functions that have no docs yet.
pub(crate) fn apply(shape: &mut Shape, section: &[u8]) {
    if section.len() as u64 > WIT_BYTES_MAX {
        return;
    }
    let json = section.strip_prefix(&[1]).unwrap_or(section);
    let Ok(package) = serde_json::from_slice::<Value>(json) else {
        return;
    };
    let is_undocumented = |function: &Function| function.docs.is_none() && !function.kind.is_for_host();
    for function in shape.functions.iter_mut().filter(|function| is_undocumented(function)) {
        let docs = match function.interface_name() {
            Some(interface) => docs_of(&package["interfaces"][interface], &function.export),
            None => package["worlds"]
                .as_object()
                .and_then(|worlds| worlds.values().find_map(|world| docs_of(world, &function.export))),
        };
        function.docs = docs.and_then(|docs| printable_docs(docs, FUNCTION_DOCS_CHARS_MAX));
    }
}

/// Returns the docs of a function from the JSON object of its interface or world.
fn docs_of<'a>(interface_or_world: &'a Value, function: &str) -> Option<&'a str> {
    const FUNCTION_KEYS: [&str; 3] = ["funcs", "func_exports", "functions"];
    FUNCTION_KEYS.iter().find_map(|key| {
        let value = &interface_or_world[*key][function];
        value.as_str().or_else(|| value["docs"].as_str())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::{Inspection, PackageContext};

    /// Returns the description of the tool `add` in a component with this section.
    fn description_with_section(section: &[u8]) -> String {
        let mut bytes = wat::parse_str(
            r#"(component
                (core module $m (func (export "add") (result i32) i32.const 1))
                (core instance $i (instantiate $m))
                (func $add (result u32) (canon lift (core func $i "add")))
                (instance $calc (export "add" (func $add)))
                (export "demo:tool/calc@0.1.0" (instance $calc)))"#,
        )
        .unwrap();
        let section = wasm_encoder::CustomSection {
            name: super::SECTION.into(),
            data: section.into(),
        };
        wasm_encoder::ComponentSection::append_to_component(&section, &mut bytes);
        let inspection = Inspection::from_bytes(
            &bytes,
            PackageContext {
                name: "calc",
                adjacent_wit: None,
            },
        )
        .unwrap();
        inspection.tools[0].description.clone()
    }

    #[test]
    fn both_formats_are_read_and_other_data_is_ignored() {
        let object = br#"{"interfaces":{"calc":{"funcs":{"add":{"docs":"Adds."}}}}}"#;
        let mut with_version_byte = vec![1];
        with_version_byte.extend_from_slice(object);
        assert_eq!(description_with_section(&with_version_byte), "Adds.");
        assert_eq!(
            description_with_section(br#"{"interfaces":{"calc":{"funcs":{"add":"Adds."}}}}"#),
            "Adds."
        );
        for invalid in [&b"\x01not json"[..], b"", b"[]", b"{\"interfaces\": 5}", b"\xff\xff"] {
            assert_eq!(
                description_with_section(invalid),
                "`add() -> u32` of `demo:tool/calc@0.1.0`."
            );
        }
    }
}
