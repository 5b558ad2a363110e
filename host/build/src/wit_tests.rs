#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use tempfile::TempDir;
use wasmparser::{Parser, Payload};
use wit_component::DecodedWasm;

use super::*;

const WORDS_WIT: &str = "
    /// Counts words.
    package demo:words@0.2.0;

    /// Anything that can be counted.
    interface counting {
        use demo:shared/types@1.0.0.{span};

        /// Counts the words of a text.
        count: func(
            text: string,
        ) -> span;
    }

    world plugin {
        export counting;
    }
";

const SHARED_WIT: &str = "
    package demo:shared@1.0.0;

    interface types {
        /// A part of a text.
        record span {
            /// The first byte.
            start: u32,
        }
    }
";

/// A component in the text format, with the export of the world in [`WORDS_WIT`]. For simplicity, its function returns a
/// number instead of a span: `embed_wit` does not compare the WIT with the component.
const COMPONENT_WAT: &str = r#"(component
    (core module $m
        (func (export "count") (param i32 i32) (result i32) i32.const 7)
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 16))
    (core instance $i (instantiate $m))
    (func $count (param "text" string) (result u32)
        (canon lift (core func $i "count") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
    (instance $counting (export "count" (func $count)))
    (export "demo:words/counting@0.2.0" (instance $counting)))"#;

/// Creates a directory with these files.
fn directory_with(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// Returns the package [`WORDS_WIT`] with its dependency [`SHARED_WIT`].
fn resolved_words_wit() -> ResolvedWit {
    let dir = directory_with(&[("wit/words.wit", WORDS_WIT), ("wit/deps/shared/types.wit", SHARED_WIT)]);
    ResolvedWit::read(&dir.path().join("wit")).unwrap()
}

/// Returns the contents of a component's top-level `toolwit:wit` sections, in order.
fn wit_sections(component: &[u8]) -> Vec<Vec<u8>> {
    let mut depth = 0;
    let mut sections = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) if depth > 0 => depth -= 1,
            Payload::CustomSection(section) if depth == 0 && section.name() == WIT_SECTION => {
                sections.push(section.data().to_vec());
            }
            _ => {}
        }
    }
    sections
}

fn decoded_package(bytes: &[u8]) -> (Resolve, PackageId) {
    match wit_component::decode(bytes).unwrap() {
        DecodedWasm::WitPackage(resolve, package) => (resolve, package),
        DecodedWasm::Component(..) => panic!("a component where a package was expected"),
    }
}

#[test]
fn docs_are_read_back_from_the_component() {
    let component = embed_wit(&wat::parse_str(COMPONENT_WAT).unwrap(), &resolved_words_wit()).unwrap();
    let sections = wit_sections(&component);
    assert_eq!(sections.len(), 2);

    let (resolve, package) = decoded_package(&sections[1]);
    let package = &resolve.packages[package];
    assert_eq!(package.name.to_string(), "demo:words@0.2.0");
    assert_eq!(package.docs.contents.as_deref(), Some("Counts words."));
    let counting = &resolve.interfaces[package.interfaces["counting"]];
    assert_eq!(counting.docs.contents.as_deref(), Some("Anything that can be counted."));
    let count = &counting.functions["count"];
    assert_eq!(count.docs.contents.as_deref(), Some("Counts the words of a text."));
    assert_eq!(count.params[0].name, "text");
}

#[test]
fn docs_of_dependencies_are_read_back() {
    let component = embed_wit(&wat::parse_str(COMPONENT_WAT).unwrap(), &resolved_words_wit()).unwrap();
    let (resolve, package) = decoded_package(&wit_sections(&component)[0]);
    let types = &resolve.interfaces[resolve.packages[package].interfaces["types"]];
    let span = &resolve.types[types.types["span"]];
    assert_eq!(span.docs.contents.as_deref(), Some("A part of a text."));
    let wit_parser::TypeDefKind::Record(record) = &span.kind else {
        panic!("not a record")
    };
    assert_eq!(record.fields[0].docs.contents.as_deref(), Some("The first byte."));
}

#[test]
fn printed_wit_has_the_docs_of_all_packages() {
    let component = embed_wit(&wat::parse_str(COMPONENT_WAT).unwrap(), &resolved_words_wit()).unwrap();
    let printed = toolwit_sandbox::component_wit(&component).unwrap();
    for doc in [
        "/// Counts the words of a text.",
        "/// A part of a text.",
        "/// The first byte.",
    ] {
        assert!(printed.contains(doc), "{doc} in {printed}");
    }
}

#[test]
fn embedded_wit_does_not_change_the_exports_that_other_tools_decode() {
    let without_wit = wat::parse_str(COMPONENT_WAT).unwrap();
    let with_wit = embed_wit(&without_wit, &resolved_words_wit()).unwrap();
    let exports = |bytes: &[u8]| match wit_component::decode(bytes).unwrap() {
        DecodedWasm::Component(resolve, world) => resolve.worlds[world]
            .exports
            .keys()
            .map(|key| resolve.name_world_key(key))
            .collect::<Vec<_>>(),
        DecodedWasm::WitPackage(..) => panic!("a package where a component was expected"),
    };
    assert_eq!(exports(&with_wit), ["demo:words/counting@0.2.0"]);
    assert_eq!(exports(&with_wit), exports(&without_wit));
    wasmparser::Validator::new().validate_all(&with_wit).unwrap();
}

#[test]
fn embedding_is_idempotent() {
    let once = embed_wit(&wat::parse_str(COMPONENT_WAT).unwrap(), &resolved_words_wit()).unwrap();
    assert_eq!(embed_wit(&once, &resolved_words_wit()).unwrap(), once);
}

#[test]
fn wasi_packages_are_not_embedded() {
    let root = "package demo:clock; world plugin { import wasi:clocks/wall@0.2.0; export now: func() -> u64; }";
    let wasi = "package wasi:clocks@0.2.0; interface wall { now: func() -> u64; }";
    let dir = directory_with(&[("wit/root.wit", root), ("wit/deps/clocks.wit", wasi)]);
    let wit = ResolvedWit::read(&dir.path().join("wit")).unwrap();
    assert_eq!(wit.encode().unwrap().len(), 1);
}

#[test]
fn invalid_wit_is_reported_with_its_position() {
    let dir = directory_with(&[(
        "wit/broken.wit",
        "package a:b;\ninterface i {\n  f: func(x: nope) -> u8;\n}\n",
    )]);
    let WitError::Invalid { message, .. } = ResolvedWit::read(&dir.path().join("wit")).unwrap_err() else {
        panic!("the error is not `WitError::Invalid`")
    };
    assert!(message.contains("broken.wit:3:14"), "{message}");
    assert!(message.contains("nope"), "{message}");
}

#[test]
fn a_missing_or_ambiguous_world_is_refused() {
    let dir = directory_with(&[("wit/w.wit", "package a:b; world one {} world two {}")]);
    let wit = ResolvedWit::read(&dir.path().join("wit")).unwrap();
    assert!(wit.world(Some("two")).is_ok());
    assert!(matches!(wit.world(Some("three")), Err(WitError::World { .. })));
    assert!(matches!(wit.world(None), Err(WitError::World { message }) if message.contains("a:b/one")));
}
