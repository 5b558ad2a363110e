//! The WIT embedded in a component or in the file next to it. It is optional: invalid WIT is ignored.

use super::*;
use toolwit::sandbox::{AdjacentWit, WIT_SECTION, component_wit};
use wasm_encoder::{ComponentSection, CustomSection};

fn with_wit_section(mut bytes: Vec<u8>, data: &[u8]) -> Vec<u8> {
    let section = CustomSection {
        name: WIT_SECTION.into(),
        data: data.into(),
    };
    section.append_to_component(&mut bytes);
    bytes
}

// attack: A13
#[test]
fn a_component_with_an_invalid_wit_section_loads() {
    let component = token_component();
    let plain = inspect(&component).unwrap();
    let mut flipped = component.clone();
    flipped[40] ^= 0xff;
    for data in [
        Vec::new(),
        b"garbage".to_vec(),
        vec![0xff; 3 << 20],
        component.clone(),
        component[..component.len() / 2].to_vec(),
        flipped,
        component_of("(component)"),
        component_of("(module)"),
    ] {
        let bytes = with_wit_section(component.clone(), &data);
        let inspection = inspect(&bytes).unwrap();
        assert_eq!(inspection.tools.len(), plain.tools.len());
        assert_eq!(inspection.tools[0].description, plain.tools[0].description);
        assert!(component_wit(&bytes).is_none_or(|wit| !wit.is_empty()));
    }
}

fn inspect_with_wit(wit: &str) -> Inspection {
    let text = r#"(component
        (core module $m (func (export "f") (param i32)))
        (core instance $i (instantiate $m))
        (func $f (param "x" u8) (canon lift (core func $i "f")))
        (instance $calc (export "f" (func $f)))
        (export "a:b/calc" (instance $calc)))"#;
    let context = PackageContext {
        name: "odd",
        adjacent_wit: Some(&AdjacentWit::Text(wit.to_owned())),
    };
    Inspection::from_bytes(&component_of(text), context).unwrap()
}

// attack: A13
#[test]
fn wit_next_to_a_component_describes_it_or_is_ignored() {
    let described = inspect_with_wit("package a:b; interface calc {\n/// Does it.\nf: func(x: u8); }");
    assert_eq!(described.tools[0].description, "Does it.");
    let plain = inspect_with_wit("").tools[0].description.clone();
    let deep = |open: &str, close: &str, times: usize| {
        format!(
            "package a:b; interface calc {{ f: func(x: {}u8{}); }}",
            open.repeat(times),
            close.repeat(times)
        )
    };
    let aliases: String = (1..30_000).map(|at| format!("type t{at} = t{};\n", at - 1)).collect();
    for hostile in [
        "interface".to_owned(),
        "/*".repeat(200_000),
        deep("list<", ">", 100_000),
        deep("option<", ">", 2_000),
        deep("tuple<u8, ", ">", 100_000),
        deep("result<", ">", 100_000),
        format!("package a:b; interface calc {{ type t0 = u8;\n{aliases} f: func(x: t29999); }}"),
        "package a:b; interface calc { type t = t; f: func(x: t); }".to_owned(),
        "package a:b; world w { include w; }".to_owned(),
    ] {
        assert_eq!(
            inspect_with_wit(&hostile).tools[0].description,
            plain,
            "{}",
            &hostile[..60.min(hostile.len())]
        );
    }
    // A very long description is truncated.
    let long = inspect_with_wit(&format!(
        "package a:b; interface calc {{\n/// {}\nf: func(x: u8); }}",
        "x".repeat(500_000)
    ));
    assert_eq!(long.tools[0].description.chars().count(), 4_097);
}

// attack: A13
#[test]
fn wit_that_macros_generated_describes_a_component_or_is_ignored() {
    let description = |wit: &str| {
        let text = format!(
            r#"(component
                (core module $m (@custom "toolwit:wit-source" "{wit}") (func (export "f") (param i32)))
                (core instance $i (instantiate $m))
                (func $f (param "x" u8) (canon lift (core func $i "f")))
                (instance $calc (export "f" (func $f)))
                (export "a:b/calc" (instance $calc)))"#
        );
        let context = PackageContext {
            name: "odd",
            adjacent_wit: None,
        };
        let inspection = Inspection::from_bytes(&component_of(&text), context).unwrap();
        inspection.tools[0].description.clone()
    };
    let wit = "package a:b; interface calc {\\0a/// Does it.\\0af: func(x: u8); }\\00";
    assert_eq!(description(wit), "Does it.");
    let other = "package a:b; interface other { g: func(); }\\00";
    assert_eq!(description(&format!("{other}{wit}")), "Does it.", "texts are merged");
    let plain = description("");
    for ignored in [
        "interface\\00".to_owned(),
        "\\ff\\fe\\00".to_owned(),
        other.repeat(100),
        format!("{}{wit}", other.repeat(100)),
        format!("{}\\00{wit}", "x".repeat(9 << 20)),
    ] {
        assert_eq!(description(&ignored), plain, "{}", &ignored[..20.min(ignored.len())]);
    }
}

#[test]
fn the_init_function_of_an_author_is_a_tool_and_that_of_a_toolchain_is_not() {
    let bytes = component_of(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func (export "init") (canon lift (core func $i "f"))))"#,
    );
    let inspection = |adjacent_wit: Option<&str>| {
        let adjacent_wit = adjacent_wit.map(|text| AdjacentWit::Text(text.to_owned()));
        let context = PackageContext {
            name: "odd",
            adjacent_wit: adjacent_wit.as_ref(),
        };
        Inspection::from_bytes(&bytes, context).unwrap()
    };
    assert_eq!(inspection(None).skipped.len(), 1);
    assert_eq!(
        inspection(Some("package a:b; world w { export start: func(); }"))
            .skipped
            .len(),
        1
    );
    let authored = inspection(Some("package a:b; world w {\n/// Begins.\nexport init: func(); }"));
    assert_eq!(authored.tools[0].description, "Begins.");
}

// attack: C21
#[test]
fn control_characters_in_docs_are_dropped() {
    let described =
        inspect_with_wit("package a:b; interface calc {\n/// Does \u{1b}[31mit\u{202e}.\nf: func(x: u8); }");
    let description = &described.tools[0].description;
    assert!(!description.contains(['\u{1b}', '\u{202e}']), "{description:?}");
}
