//! State that functions without a resource keep for a conversation, if their package declares it.

use std::sync::Arc;

use serde_json::json;
use toolwit::sandbox::{Annotations, Inspection, PackageContext, Plugin, lint};
use toolwit::tool::EffectClass;
use toolwit::{Arguments, ErrorKind, ToolContext};
use toolwit_tests::{Conversation, Guests, component_of};

/// A cart with one item: `add-item` returns nothing, and `item` returns what was added.
const CART: &str = r#"(component
    (core module $m
        (global $item (mut i32) (i32.const 0))
        (func (export "add") (param i32) (global.set $item (local.get 0)))
        (func (export "item") (result i32) (global.get $item))
        (func (export "trap") unreachable))
    (core instance $i (instantiate $m))
    (func (export "add-item") (param "item" u32) (canon lift (core func $i "add")))
    (func (export "item") (result u32) (canon lift (core func $i "item")))
    (func (export "trap") (canon lift (core func $i "trap"))))"#;

fn context(name: &str) -> PackageContext<'_> {
    PackageContext {
        name,
        adjacent_wit: None,
    }
}

fn annotations(keeps_state: bool) -> Annotations {
    let mut annotations = Annotations::default();
    annotations.keeps_state = keeps_state;
    annotations
}

/// Loads the cart from a file, as a package that declares or does not declare that its functions share state.
fn cart(guests: &Guests, directory: &tempfile::TempDir, keeps_state: bool) -> Arc<Plugin> {
    let (bytes, path) = (component_of(CART), directory.path().join("cart.wasm"));
    std::fs::write(&path, &bytes).unwrap();
    let annotations = annotations(keeps_state);
    let inspection = Inspection::from_bytes_with(&bytes, context("cart"), &annotations).unwrap();
    Plugin::from_inspection(&guests.runtime, "cart", path, inspection, &annotations).unwrap()
}

#[tokio::test]
async fn declared_state_lives_as_long_as_the_conversation() {
    let (guests, directory) = (Guests::new(), tempfile::tempdir().unwrap());
    let plugin = cart(&guests, &directory, true);
    let mut conversation = Conversation::over(&[&plugin]);
    conversation.value("add_item", json!({"item": 7})).await;
    assert_eq!(conversation.value("item", json!({})).await, json!(7));
    let mut other = Conversation::over(&[&plugin]);
    assert_eq!(other.value("item", json!({})).await, json!(0));
    let access = conversation
        .tool("item")
        .access(&Arguments::new(), &ToolContext::new())
        .await;
    assert_eq!(access.effect.class, EffectClass::Write);
}

#[tokio::test]
async fn without_a_declaration_each_call_has_fresh_state_and_only_reads() {
    let (guests, directory) = (Guests::new(), tempfile::tempdir().unwrap());
    let plugin = cart(&guests, &directory, false);
    let mut conversation = Conversation::over(&[&plugin]);
    conversation.value("add_item", json!({"item": 7})).await;
    assert_eq!(conversation.value("item", json!({})).await, json!(0));
    let access = conversation
        .tool("add_item")
        .access(&Arguments::new(), &ToolContext::new())
        .await;
    assert_eq!(access.effect.class, EffectClass::Read);
}

#[tokio::test]
async fn the_first_call_after_a_loss_of_state_reports_the_loss() {
    let (guests, directory) = (Guests::new(), tempfile::tempdir().unwrap());
    let mut conversation = Conversation::over(&[&cart(&guests, &directory, true)]);
    conversation.value("add_item", json!({"item": 7})).await;
    conversation.error("trap", json!({})).await;
    let error = conversation.error("item", json!({})).await;
    assert_eq!(error.kind, ErrorKind::EntityGone);
    assert!(error.message.contains("the guest trapped"), "{error}");
    assert_eq!(conversation.value("item", json!({})).await, json!(0));
}

#[test]
fn functions_whose_effect_is_lost_are_found() {
    let lost_state = |text: &str, keeps_state: bool| {
        let bytes = component_of(text);
        let inspection = Inspection::from_bytes_with(&bytes, context("cart"), &annotations(keeps_state)).unwrap();
        let findings = lint(&bytes, context("cart"), &annotations(keeps_state)).unwrap();
        let has_finding = findings.iter().any(|finding| finding.message.contains("is lost"));
        assert_eq!(has_finding, inspection.lost_state().is_some());
        inspection.lost_state().map(str::to_owned)
    };
    assert_eq!(lost_state(CART, false).as_deref(), Some("add-item"));
    assert_eq!(lost_state(CART, true), None);
    assert_eq!(lost_state(&CART.replace("add-item", "validate-item"), false), None);
    let with_output = CART.replace(
        "(component\n",
        r#"(component (import "toolwit:plugin/output@0.1.0" (instance (export "progress" (func (param "text" string)))))"#,
    );
    assert_eq!(
        lost_state(&with_output, false),
        None,
        "it can show something to the user"
    );
    let with_files = CART.replace(
        "(component\n",
        r#"(component (import "wasi:filesystem/preopens@0.2.0" (instance))"#,
    );
    assert!(lost_state(&with_files, false).is_some(), "another function returns it");
    let without_reader = with_files.replace(
        r#"(func (export "item") (result u32)"#,
        r#"(func (export "item") (param "at" u32) (result u32)"#,
    );
    let without_reader = without_reader.replace(
        r#"(func (export "item") (result i32)"#,
        r#"(func (export "item") (param i32) (result i32)"#,
    );
    assert_eq!(lost_state(&without_reader, false), None, "it may write a file");
}
