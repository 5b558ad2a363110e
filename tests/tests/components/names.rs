//! Conflicting names, and functions with many parameters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::*;
use serde_json::{Value, json};
use toolwit::tool::ToolName;
use toolwit_tests::{Conversation, Guests};

/// Returns a component that exports `answer` from several interfaces, each of which returns another number.
fn component_with_interfaces(names: &[&str]) -> String {
    let mut text = String::from("(component");
    for (at, name) in names.iter().enumerate() {
        write!(
            text,
            r#"(core module $m{at} (func (export "f") (result i32) i32.const {at}))
               (core instance $c{at} (instantiate $m{at}))
               (func $f{at} (result u32) (canon lift (core func $c{at} "f")))
               (instance $i{at} (export "answer" (func $f{at})))
               (export "{name}" (instance $i{at}))"#
        )
        .unwrap();
    }
    text.push(')');
    text
}

// attack: A10, attack: A12
#[tokio::test]
async fn two_versions_of_an_interface_have_separate_tools() {
    let text = component_with_interfaces(&["a:b/calc@1.0.0", "a:b/calc@2.0.0", "a:b/calc@1.0.1", "c:d/calc@1.0.0"]);
    let plugin = Guests::new().text("calc", &text).await.unwrap();
    let mut conversation = Conversation::over(&[&plugin]);
    let names = conversation.names();
    assert_eq!(names[..2], ["answer", "calc_answer"]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4);
    let mut answers = BTreeSet::new();
    for name in &names {
        assert!(ToolName::parse(name).is_some(), "{name}");
        answers.insert(conversation.value(name, json!({})).await.as_u64().unwrap());
    }
    assert_eq!(
        answers,
        BTreeSet::from([0, 1, 2, 3]),
        "each name calls a different function"
    );
}

// attack: A11
#[tokio::test]
async fn two_plugins_with_one_function_can_both_be_called() {
    let guests = Guests::new();
    let text = component_with_interfaces(&["a:b/calc@1.0.0"]);
    let (first, second) = (
        guests.text("first", &text).await.unwrap(),
        guests.text("second", &text).await.unwrap(),
    );
    let conversation = Conversation::over(&[&first, &second]);
    assert_eq!(conversation.names(), ["answer", "calc_answer"]);
    let ids: Vec<_> = conversation
        .tools
        .iter()
        .map(|tool| tool.definition.id.to_string())
        .collect();
    assert_eq!(ids, ["first/a:b/calc@1.0.0#answer", "second/a:b/calc@1.0.0#answer"]);
}

// attack: A12
#[tokio::test]
async fn a_method_and_a_function_of_the_same_name_are_two_tools() {
    let text = r#"(component
        (core module $m
            (func (export "make") (result i32) i32.const 1)
            (func (export "one") (result i32) i32.const 1)
            (func (export "two") (param i32) (result i32) i32.const 2))
        (core instance $i (instantiate $m))
        (type $cart' (resource (rep i32)))
        (export $cart "cart" (type $cart'))
        (core func $new (canon resource.new $cart'))
        (core module $n (import "" "new" (func $new (param i32) (result i32)))
            (func (export "make") (result i32) (call $new (i32.const 1))))
        (core instance $j (instantiate $n (with "" (instance (export "new" (func $new))))))
        (func (export "[constructor]cart") (result (own $cart)) (canon lift (core func $j "make")))
        (func (export "cart-new") (result u32) (canon lift (core func $i "one")))
        (func (export "cart-size") (result u32) (canon lift (core func $i "one")))
        (func (export "[method]cart.size") (param "self" (borrow $cart)) (result u32) (canon lift (core func $i "two"))))"#;
    let plugin = Guests::new().text("shop", text).await.unwrap();
    let mut conversation = Conversation::over(&[&plugin]);
    assert_eq!(conversation.names(), ["cart_new", "shop_cart_new", "cart_size"]);
    let cart = conversation.value("cart_new", json!({})).await;
    let method_name = cart["available_tools"][0].as_str().unwrap().to_owned();
    assert_eq!(conversation.names().len(), 4);
    let name = conversation.names()[3].clone();
    assert_eq!(name, "shop_cart_size", "the next free name");
    assert_eq!(
        conversation.value(&name, json!({"cart_id": cart["id"]})).await,
        json!(2)
    );
    assert_eq!(conversation.value("cart_size", json!({})).await, json!(1));
    assert_eq!(method_name, name, "`available_tools` contains the assigned name");
}

/// Returns an interface that has a resource of the given name, with a static function and a method.
fn with_resource(interface: &str, resource: &str, at: usize) -> String {
    format!(
        r#"(component $c{at}
            (type $t' (resource (rep i32)))
            (core func $new (canon resource.new $t'))
            (core module $m (import "" "new" (func $new (param i32) (result i32)))
                (func (export "make") (result i32) (call $new (i32.const 1)))
                (func (export "see") (param i32) (result i32) i32.const {at}))
            (core instance $i (instantiate $m (with "" (instance (export "new" (func $new))))))
            (func $make (result (own $t')) (canon lift (core func $i "make")))
            (func $see (param "self" (borrow $t')) (result u32) (canon lift (core func $i "see")))
            (component $names
                (import "t" (type $t (sub resource)))
                (import "make" (func $make (result (own $t))))
                (import "see" (func $see (param "self" (borrow $t)) (result u32)))
                (export $named "{resource}" (type $t))
                (export "[static]{resource}.find" (func $make) (func (result (own $named))))
                (export "[method]{resource}.see" (func $see) (func (param "self" (borrow $named)) (result u32))))
            (instance $all (instantiate $names (with "t" (type $t')) (with "make" (func $make)) (with "see" (func $see))))
            (export "{interface}" (instance $all)))
        (instance $i{at} (instantiate $c{at}))
        (alias export $i{at} "{interface}" (instance $e{at}))
        (export "{interface}" (instance $e{at}))"#
    )
}

// attack: A10
#[tokio::test]
async fn resources_of_one_name_in_two_interfaces_are_two_types() {
    let text = format!(
        "(component {} {})",
        with_resource("a:b/shop@1.0.0", "item", 1),
        with_resource("a:b/shop@2.0.0", "item", 2)
    );
    let plugin = Guests::new().text("shop", &text).await.unwrap();
    assert_eq!(plugin.inspection().entities.len(), 2);
    let mut conversation = Conversation::over(&[&plugin]);
    assert_eq!(conversation.names(), ["item_find", "shop_item_find"]);
    for (find, expected) in [("item_find", 1), ("shop_item_find", 2)] {
        let before = conversation.names().len();
        assert_eq!(conversation.value(find, json!({})).await["id"], "1");
        assert_eq!(conversation.names().len(), before + 1);
        let see = conversation.names()[before].clone();
        assert_eq!(conversation.value(&see, json!({"item_id": "1"})).await, json!(expected));
    }
}

// attack: A10
#[tokio::test]
async fn a_function_may_have_many_parameters() {
    let mut params = String::new();
    for at in 0..40 {
        write!(params, "(param \"p{at}\" u64)").unwrap();
    }
    // More than 16 parameters are passed in memory.
    let text = format!(
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 64)
                (func (export "last") (param i32) (result i64) (i64.load offset=312 (local.get 0))))
            (core instance $i (instantiate $m))
            (func (export "last") {params} (result u64)
                (canon lift (core func $i "last") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#
    );
    let plugin = Guests::new().text("many", &text).await.unwrap();
    let mut conversation = Conversation::over(&[&plugin]);
    let mut arguments: Value = (0..40)
        .map(|at| (format!("p{at}"), json!(at)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    arguments["p39"] = json!(u64::MAX.to_string());
    assert_eq!(conversation.value("last", arguments).await, json!(u64::MAX.to_string()));
}

// attack: A12
#[test]
fn tools_that_cannot_be_called_as_such_are_skipped_with_a_reason() {
    let text = r#"(component
        (import "wasi:io/streams@0.2.0" (instance $streams (export "input-stream" (type (sub resource)))))
        (alias export $streams "input-stream" (type $stream))
        (core module $m (func (export "f") (param i32)) (func (export "g")) (func (export "h") (result i32) i32.const 0))
        (core instance $i (instantiate $m))
        (func (export "read") (param "from" (borrow $stream)) (canon lift (core func $i "f")))
        (func (export "init") (canon lift (core func $i "g")))
        (func $handle (param "request" u32) (canon lift (core func $i "f")))
        (instance $server (export "handle" (func $handle)))
        (export "wasi:http/incoming-handler@0.2.0" (instance $server))
        (func $run (result u32) (canon lift (core func $i "h")))
        (instance $odd-run (export "run" (func $run)))
        (export "wasi:cli/run@0.2.0" (instance $odd-run))
        (export "wasi:cli/run@0.1.0" (instance $odd-run))
        (export "wasi:keyvalue/watcher@0.2.0" (instance $server))
        (component $inner)
        (export "inner" (component $inner)))"#;
    let inspection = inspect_text(text);
    assert!(inspection.tools.is_empty(), "{:?}", inspection.tools);
    let skipped: BTreeMap<_, _> = inspection
        .skipped
        .iter()
        .map(|skipped| (skipped.export.as_str(), skipped.reason.as_str()))
        .collect();
    assert_eq!(
        skipped,
        BTreeMap::from([
            ("read", "it uses the host's resource `input-stream`"),
            ("init", "it was added by the toolchain, not by the author"),
            (
                "wasi:http/incoming-handler@0.2.0",
                "it is an HTTP server, and this host calls functions"
            ),
            ("wasi:cli/run@0.1.0", "this host runs programs of WASI 0.2 and 0.3"),
            ("wasi:keyvalue/watcher@0.2.0", "it is an interface of WASI, not a tool"),
            ("wasi:cli/run@0.2.0", "it has no function `run: func() -> result`"),
            ("inner", "it is not a function"),
        ])
    );
}
