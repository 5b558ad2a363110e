//! Types that are small in the binary and huge when expanded.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::*;

/// Returns a component with a chain of types, each of which contains the previous one, and a function that takes the last.
fn type_chain(first: &str, next: impl Fn(usize) -> String, len: usize) -> String {
    let mut text = format!("(component (type $t0 {first})");
    for at in 1..=len {
        write!(text, "(type $t{at} {})", next(at - 1)).unwrap();
    }
    write!(
        text,
        r#"(core module $m
               (memory (export "memory") 1)
               (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 64)
               (func (export "f") (param i32 i32)))
           (core instance $i (instantiate $m))
           (type $list (list $t{len}))
           (func (export "f") (param "x" $list)
               (canon lift (core func $i "f") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#
    )
    .unwrap();
    text
}

// attack: A13, attack: A14
#[test]
fn deep_and_wide_types_are_refused_in_bounded_time() {
    let started = Instant::now();
    // Deeper than the component model allows: the component is invalid.
    refusal(&component_of(&type_chain(
        "u32",
        |before| format!("(list $t{before})"),
        1_000,
    )));
    // Deeper than a model can follow: the function is skipped.
    let deep = inspect_text(&type_chain("u32", |before| format!("(list $t{before})"), 80));
    assert!(deep.tools.is_empty());
    assert_eq!(deep.skipped[0].reason, "its types nest deeper than 64");
    // Each type contains the previous one twice: 2^15 types in a few bytes, when expanded.
    let wide = inspect_text(&type_chain(
        "u32",
        |before| format!("(tuple $t{before} $t{before})"),
        15,
    ));
    let too_many = "its types have more than 4096 parts (types, fields and cases; a long name is several parts)";
    assert_eq!(wide.skipped[0].reason, too_many);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// Returns a component that exports one function under many names.
fn many_exports(count: usize, ty: &str) -> String {
    let mut text = format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 64)
                (func (export "f") (param i32 i32)))
            (core instance $i (instantiate $m))
            {ty}
            (type $list (list $t))
            (func $f (param "x" $list)
                (canon lift (core func $i "f") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))"#
    );
    for at in 0..count {
        write!(text, "(export \"f{at}\" (func $f))").unwrap();
    }
    text.push(')');
    text
}

// attack: A13
#[test]
fn functions_beyond_the_limit_are_skipped() {
    let inspection = inspect_text(&many_exports(6_000, "(type $t u32)"));
    assert_eq!(inspection.tools.len(), 4_096);
    assert_eq!(
        inspection.skipped[0].reason,
        "the component exports more than 4096 functions"
    );
    assert_eq!(
        inspection.skipped.len(),
        1_025,
        "the list of skipped functions is limited, too"
    );
}

// attack: A13, attack: A14
#[test]
fn the_types_of_all_functions_together_are_limited() {
    let started = Instant::now();
    let mut ty = String::from("(type $t0 u32)");
    for at in 1..=9 {
        write!(ty, "(type $t{at} (tuple $t{0} $t{0}))", at - 1).unwrap();
    }
    write!(ty, "(type $t (tuple $t9 u8))").unwrap();
    let inspection = inspect_text(&many_exports(900, &ty));
    assert!(
        (120..130).contains(&inspection.tools.len()),
        "{}",
        inspection.tools.len()
    );
    assert!(
        inspection.skipped[0]
            .reason
            .contains("the types of the component's functions")
    );
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

// attack: A13
#[test]
fn long_names_count_with_their_size() {
    let names: String = (0..50).map(|at| format!(" \"{}{at}\"", "n".repeat(5_000))).collect();
    let inspection = inspect_text(&many_exports(
        10,
        &format!("(type $e (enum{names})) (export $t \"e\" (type $e))"),
    ));
    assert!(inspection.tools.is_empty());
    let too_many = "its types have more than 4096 parts (types, fields and cases; a long name is several parts)";
    assert_eq!(inspection.skipped[0].reason, too_many);
    let long = format!(
        "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) (func (export \"{}\") (canon lift (core func $i \"f\"))))",
        "a".repeat(5_000)
    );
    assert_eq!(
        inspect_text(&long).skipped[0].reason,
        "its name is longer than 512 bytes"
    );
}

#[test]
fn functions_with_unsupported_types_are_skipped_with_the_reason() {
    for (ty, reason) in [
        ("(stream $pair)", "it uses a `stream` whose items are not scalars"),
        (
            "(future $pair)",
            "it uses a `future` whose payload is neither a scalar nor a `result` of strings",
        ),
    ] {
        let text = format!(
            r#"(component
                (type $pair (tuple u8 u8))
                (type $t {ty})
                (core module $m (func (export "f") (param i32)))
                (core instance $i (instantiate $m))
                (func (export "f") (param "x" $t) (canon lift (core func $i "f"))))"#
        );
        let inspection = inspect_text(&text);
        assert_eq!(inspection.skipped[0].reason, reason);
    }
}
