//! Bytes that are not a component, or only almost one.

use super::*;
use toolwit::sandbox::WasiVersions;

// attack: A2
#[test]
fn every_truncated_component_is_refused() {
    let component = token_component();
    for len in 0..component.len() {
        match inspect(&component[..len]) {
            // A prefix that ends between two sections is a valid component with fewer exports.
            Ok(inspection) => assert!(inspection.tools.len() < 20, "{len}"),
            Err(_) => {
                refusal(&component[..len]);
            }
        }
    }
    for len in 0..8 {
        assert!(refusal(&component[..len]).message.contains("too short"), "{len}");
    }
}

// attack: A1
#[test]
fn a_component_with_a_flipped_bit_is_inspected_or_refused() {
    let component = token_component();
    for at in 0..component.len() {
        for bit in [0, 3, 7] {
            let mut flipped = component.clone();
            flipped[at] ^= 1 << bit;
            if inspect(&flipped).is_err() {
                refusal(&flipped);
            }
        }
    }
}

// attack: A3, attack: A4, attack: A5, attack: A15
#[test]
fn files_that_are_not_components_are_refused_with_their_kind() {
    for (bytes, expected, hint) in [
        (b"".to_vec(), "too short", ""),
        (b"(component)".to_vec(), "text", "assemble the text"),
        (b"#!/bin/sh\necho no\n".to_vec(), "magic number", ""),
        (
            b"\x7fELF\x02\x01\x01".to_vec(),
            "machine code",
            "the WebAssembly component itself",
        ),
        (
            component_of("(module)"),
            "core module, not a component",
            "encode it as a component",
        ),
        (b"\0asm\x0a\0\x01\x01".to_vec(), "unknown WebAssembly version", ""),
        (
            b"\0asm\x0c\0\x01\0".to_vec(),
            "draft 12 of the component model, and the host reads version 13",
            "build it again with current tools",
        ),
        (vec![0; 1 << 20], "magic number", ""),
    ] {
        let error = refusal(&bytes);
        assert!(error.message.contains(expected), "{error}");
        assert!(
            error.suggestion.as_deref().unwrap_or_default().contains(hint),
            "{error:#?}"
        );
    }
}

// attack: A6
#[test]
fn a_function_body_that_does_not_match_its_type_is_refused_at_inspection() {
    let text = "(component (core module $m (func (export \"f\") (result i32) i64.const 1)))";
    let error = refusal(&component_of(text));
    assert!(error.message.contains("type mismatch"), "{error}");
}

// attack: A8
#[test]
fn a_valid_component_with_an_unsupported_feature_is_refused_with_its_name() {
    let synchronous_read = "(component (type $s (stream u8)) (core module $m (memory (export \"m\") 1))
        (core instance $i (instantiate $m)) (core func (canon stream.read $s (memory (core memory $i \"m\")))))";
    let legacy_exception = "(component (core module (tag) (func try catch 0 end)))";
    let large_memory =
        "(component (core module $m (memory (export \"m\") i64 1) (func (export \"f\") (result i64) i64.const 0))
        (core instance $i (instantiate $m))
        (func (result string) (canon lift (core func $i \"f\") (memory (core memory $i \"m\")))))";
    let managed_values = "(component (import \"f\" (func $f)) (core type $t (func))
        (core func (canon lower (func $f) gc (core-type $t))))";
    let shared = "(component (core module (memory 1 1 shared)))";
    for (text, feature) in [
        ("(component (core func (canon error-context.drop)))", "error-context"),
        (synchronous_read, "more async builtins"),
        (legacy_exception, "exceptions"),
        (shared, "threads"),
        (large_memory, "`cm64` feature"),
        (managed_values, "`cm-gc` feature"),
        ("(component (core module (type (array i32))))", "gc feature"),
    ] {
        let error = inspect(&component_of(text)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error:#?}");
        assert!(error.message.contains("that the host does not support"), "{error}");
        assert!(error.message.contains(feature), "{error}");
        assert!(error.suggestion.as_ref().unwrap().contains("without this feature"));
    }
    // A component with such a feature that is damaged as well is refused as damaged.
    let damaged = "(component (core func (canon error-context.drop)) (core module (func (result i32) i64.const 1)))";
    refusal(&component_of(damaged));
}

// attack: A7
#[test]
fn unknown_imports_are_named_and_long_names_are_cut() {
    let text = r#"(component
        (import "test:numbers/test" (instance (export "f" (func))))
        (import "wasi:cli/environment@0.3.0" (instance (export "f" (func)))))"#;
    let error = inspect_text(text).require_loadable(WasiVersions::Wasi2).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnknownImport);
    assert_eq!(
        error.message,
        "it imports `test:numbers/test`, which the host does not offer"
    );
    let long = format!(r#"(component (import "{}" (func)))"#, "a".repeat(90_000));
    let error = inspect_text(&long).require_loadable(WasiVersions::Wasi2).unwrap_err();
    assert!(error.message.len() < 2_000, "{}", error.message.len());
}

#[test]
fn a_component_for_a_draft_of_async_functions_is_refused_with_the_reason() {
    // The drafts marked the name of an async function, where WASI 0.3.0 has async function types.
    let mut draft = component_of(r#"(component (import "wasync-handle" (func)))"#);
    let name = draft.windows(13).position(|window| window == b"wasync-handle").unwrap();
    draft[name..name + 13].copy_from_slice(b"[async]handle");
    let error = refusal(&draft);
    assert!(error.message.contains("a draft of async functions"), "{error}");
    assert!(error.message.contains("[async]handle"), "{error}");
    assert_eq!(error.suggestion.as_deref(), Some("build it again with current tools"));
}

#[test]
fn a_version_of_an_import_that_the_host_does_not_offer_has_a_hint_that_fits() {
    for (import, hint) in [
        ("wasi:cli/exit@0.3.0-rc-2026-03-15", "a draft of WASI 0.3"),
        ("wasi:http/handler@0.3.0", "only some interfaces of WASI 0.3"),
        ("wasi:cli/exit@0.2.0-rc-2023-11-10", "build it for WASI >=0.2.0"),
        ("wasi:io/streams", "build it for WASI >=0.2.0"),
        ("wasi:keyvalue/eventual@0.1.0", "wasi:keyvalue/store@0.2.0-draft2"),
        ("wasi:keyvalue/store@0.3.0-draft", "wasi:keyvalue/store@0.2.0-draft2"),
        ("wasi:config/runtime@0.2.0-draft", "wasi:config/store@0.2.0"),
        ("wasi:logging/logging@0.9.0", "build it without"),
        ("acme:cloud/api@1.0.0", "build it without"),
        ("acme:cloud/api@0.3.0-rc.1", "build it without"),
    ] {
        let text = format!(r#"(component (import "{import}" (instance (export "f" (func)))))"#);
        let inspection = inspect_text(&text);
        for wasi in [WasiVersions::Wasi2, WasiVersions::Wasi2And3] {
            let error = inspection.require_loadable(wasi).unwrap_err();
            assert_eq!(
                error.message,
                format!("it imports `{import}`, which the host does not offer")
            );
            let suggestion = error.suggestion.as_deref().unwrap_or_default();
            assert!(suggestion.contains(hint), "{import}: {suggestion}");
        }
    }
}

// attack: A9
#[test]
fn a_component_without_functions_has_no_tools() {
    let inspection = inspect_text(
        r#"(component
            (type $t' (resource (rep i32)))
            (export $t "thing" (type $t'))
            (export "same-thing" (type $t))
            (type $r (record (field "a" u8)))
            (export "a-record" (type $r)))"#,
    );
    assert!(inspection.tools.is_empty());
    assert!(inspection.require_loadable(WasiVersions::Wasi2).is_ok());
}
