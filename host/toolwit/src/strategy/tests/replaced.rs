//! Live entities of a plugin whose file is replaced.

use super::guards::{last_messages, live_registry};
use super::*;
use crate::strategy::RegistryTools;

/// Returns a component with carts that all have the id `1`. A cart begins with `start` items, `add` returns their number, and
/// the function `checkout` takes a cart. The method `drop` exists in one version only.
fn shop(start: u32, has_drop: bool) -> Vec<u8> {
    let drop = r#"(func (export "[method]cart.drop") (param "self" (borrow $cart)) (result u32)
        (canon lift (core func $i "checkout")))"#;
    let drop = if has_drop { drop } else { "" };
    let text = format!(
        r#"(component
          (type $cart' (resource (rep i32)))
          (core func $new (canon resource.new $cart'))
          (core module $m
            (import "host" "new" (func $new (param i32) (result i32)))
            (memory (export "memory") 1)
            ;; The result of `id`: the address and the length of the text.
            (data (i32.const 0) "\08\00\00\00\01\00\00\00")
            (data (i32.const 8) "1")
            ;; The representation of a cart is the address of its number of items.
            (global $free (mut i32) (i32.const 16))
            (func (export "new") (result i32)
              (i32.store (global.get $free) (i32.const {start}))
              (global.set $free (i32.add (global.get $free) (i32.const 4)))
              (call $new (i32.sub (global.get $free) (i32.const 4))))
            (func (export "id") (param i32) (result i32) (i32.const 0))
            (func (export "add") (param i32) (result i32)
              (i32.store (local.get 0) (i32.add (i32.load (local.get 0)) (i32.const 1)))
              (i32.load (local.get 0)))
            (func (export "checkout") (param i32) (result i32) (i32.load (local.get 0))))
          (core instance $host (export "new" (func $new)))
          (core instance $i (instantiate $m (with "host" (instance $host))))
          (alias core export $i "memory" (core memory $memory))
          (export $cart "cart" (type $cart'))
          (func (export "[constructor]cart") (result (own $cart)) (canon lift (core func $i "new")))
          (func (export "[method]cart.id") (param "self" (borrow $cart)) (result string)
            (canon lift (core func $i "id") (memory $memory)))
          (func (export "[method]cart.add") (param "self" (borrow $cart)) (result u32)
            (canon lift (core func $i "add")))
          {drop}
          (func (export "checkout") (param "cart" (borrow $cart)) (result u32)
            (canon lift (core func $i "checkout"))))"#
    );
    wat::parse_str(text).unwrap()
}

// accept: 37
#[tokio::test]
async fn an_entity_of_a_replaced_plugin_is_gone_and_its_id_is_one_new_object() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.wasm");
    fs::write(&file, shop(0, true)).unwrap();
    let registry = live_registry(directory.path()).await;
    let checkout = || call("checkout", json!({"cart": "1"}));
    let (builder, recorder) = recording_builder([
        call("cart_new", json!({})),
        call("cart_1_add", json!({})),
        checkout(),
        answer("one"),
        call("cart_1_add", json!({})),
        checkout(),
        call("cart_new", json!({})),
        call("cart_1_add", json!({})),
        checkout(),
        call("cart_1_drop", json!({})),
        answer("two"),
    ]);
    let strategy = RegistryTools::new(registry.clone(), Scope::new());
    let mut conversation = builder.strategy(strategy).build().unwrap();
    conversation.run("one").await.unwrap();
    fs::write(&file, shop(100, false)).unwrap();
    assert!(registry.refresh().await.unwrap().is_changed);
    conversation.run("two").await.unwrap();

    let messages = last_messages(&recorder);
    assert_eq!(messages[2..4], ["1", "1"]);
    let gone = &messages[5];
    assert!(
        gone.contains("entity-gone") && gone.contains("replaced by another version"),
        "{gone}"
    );
    assert!(
        gone.contains("`cart_new`"),
        "it names the tool that gives new ones: {gone}"
    );
    assert!(messages[6].contains("there is no `cart`"), "{}", messages[6]);
    assert_eq!(messages[8..10], ["101", "101"], "one object, under the same name");
    assert!(messages[10].contains("has been removed"), "{}", messages[10]);
    let names = recorder.requests.lock().unwrap().last().unwrap().names.clone();
    assert_eq!(
        names.iter().filter(|name| name.ends_with("_add")).count(),
        1,
        "{names:?}"
    );
}
