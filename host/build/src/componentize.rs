//! Converts a core module and its WIT to a component.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};

use super::{BuildError, ResolvedWit, clock_guard::guard_clock};

/// Converts a core module to a component that implements a world of the WIT. `path` appears only in errors.
///
/// Imports of WASI preview 1 become imports of WASI 0.2. A module in which `wit-bindgen` embedded the component type
/// needs no WIT. Any other module must encode its strings in UTF-8. If Go built the module, [`guard_clock`] changes it.
pub(super) fn componentize(
    path: &Path,
    mut module: Vec<u8>,
    wit: Option<&ResolvedWit>,
    world: Option<&str>,
) -> Result<Vec<u8>, BuildError> {
    let failure = |message: String| BuildError::Componentize {
        path: path.to_owned(),
        message,
    };
    module = guard_clock(module).map_err(failure)?;
    if !has_component_type(&module) {
        let wit = wit.ok_or_else(|| failure("it contains no component type, and the project has no WIT".to_owned()))?;
        let world = wit.world(world)?;
        embed_component_metadata(&mut module, wit.resolve(), world, StringEncoding::UTF8)
            .map_err(|error| failure(format!("{error:#}")))?;
    }
    let encoded = catch_unwind(AssertUnwindSafe(|| {
        ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .and_then(|encoder| {
                encoder.adapter(
                    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME,
                    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
                )
            })
            .and_then(|mut encoder| encoder.encode())
    }));
    match encoded {
        Ok(encoded) => encoded.map_err(|error| failure(format!("{error:#}"))),
        Err(_panic) => Err(failure("the encoder panicked".to_owned())),
    }
}

fn has_component_type(module: &[u8]) -> bool {
    wasmparser::Parser::new(0).parse_all(module).flatten().any(|payload| {
        matches!(payload, wasmparser::Payload::CustomSection(section) if section.name().starts_with("component-type"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::fs;

    use super::*;

    const MODULE: &str = r#"(module
        (func (export "demo:calc/sums@0.1.0#add") (param i32 i32) (result i32)
            local.get 0 local.get 1 i32.add))"#;

    fn wit(text: &str) -> ResolvedWit {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("calc.wit");
        fs::write(&file, text).unwrap();
        ResolvedWit::read(&file).unwrap()
    }

    #[test]
    fn a_module_becomes_a_component_that_exports_its_world() {
        let wit = wit(
            "package demo:calc@0.1.0; interface sums { add: func(a: u32, b: u32) -> u32; }
                       world calc { export sums; }",
        );
        let module = wat::parse_str(MODULE).unwrap();
        let component = componentize(Path::new("calc.wasm"), module, Some(&wit), None).unwrap();
        let wit_component::DecodedWasm::Component(resolve, world) = wit_component::decode(&component).unwrap() else {
            panic!("not a component")
        };
        let names: Vec<_> = resolve.worlds[world]
            .exports
            .keys()
            .map(|key| resolve.name_world_key(key))
            .collect();
        assert_eq!(names, ["demo:calc/sums@0.1.0"]);
    }

    #[test]
    fn the_error_for_a_missing_export_of_the_world_names_the_export() {
        let wit = wit(
            "package demo:calc@0.1.0; interface sums { multiply: func(a: u32, b: u32) -> u32; }
                       world calc { export sums; }",
        );
        let module = wat::parse_str(MODULE).unwrap();
        let error = componentize(Path::new("calc.wasm"), module, Some(&wit), None).unwrap_err();
        assert!(error.to_string().contains("multiply"), "{error}");
        assert!(error.suggestion().is_some());
    }

    #[test]
    fn a_module_without_wit_is_refused() {
        let module = wat::parse_str(MODULE).unwrap();
        let error = componentize(Path::new("calc.wasm"), module, None, None).unwrap_err();
        assert!(matches!(error, BuildError::Componentize { .. }), "{error:?}");
    }
}
