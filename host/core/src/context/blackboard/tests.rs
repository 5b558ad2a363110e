#![allow(clippy::unwrap_used)]

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::ToolContext;

fn customer(id: &str) -> Artifact {
    Artifact::new("shop/customers@1.0.0#customer", json!({ "id": id }))
}

fn ids(board: &dyn Blackboard) -> Vec<String> {
    let entries = board.entries();
    entries
        .iter()
        .map(|entry| entry.value()["id"].as_str().unwrap().to_owned())
        .collect()
}

// accept: 101
#[test]
fn objects_are_found_by_name_and_by_simple_or_full_type() {
    let board = MemoryBlackboard::new();
    board.put(customer("a")).unwrap();
    board.put_named("buyer", customer("b")).unwrap();
    board.put_named("buyer", customer("c")).unwrap();
    assert_eq!(
        board.get("buyer").unwrap().value()["id"],
        "c",
        "a name refers to the newest object with this name"
    );
    assert_eq!(board.last("customer").unwrap().value()["id"], "c");
    assert_eq!(board.count("shop/customers@1.0.0#customer"), 3);
    assert_eq!(board.count("mer"), 0, "a part of a simple name does not match");
    assert!(board.get("seller").is_none() && board.last("order").is_none());
    assert_eq!(ids(&board), ["a", "b", "c"]);
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Point {
    x: i32,
}

#[test]
fn newest_object_of_a_rust_type_is_deserialised() {
    let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    board.put(Artifact::of(&Point { x: 1 }).unwrap()).unwrap();
    board.put(Artifact::of(&Point { x: 2 }).unwrap()).unwrap();
    assert_eq!(board.last_of::<Point>(), Some(Point { x: 2 }));
    assert_eq!(board.count("Point"), 2);
    assert_eq!(board.last_of::<String>(), None);
}

#[test]
fn a_full_board_rejects_further_objects_and_names_the_limit() {
    let one_entry_board = MemoryBlackboard::with_limits(BlackboardLimits {
        entries_max: 1,
        bytes_max: 10_000,
    });
    one_entry_board.put(customer("a")).unwrap();
    let error = one_entry_board.put(customer("b")).unwrap_err();
    assert_eq!(error.limit.as_ref().unwrap().limit, "blackboard_entries_max");
    let small_board = MemoryBlackboard::with_limits(BlackboardLimits {
        entries_max: 10,
        bytes_max: 1_000,
    });
    small_board.put(customer("a")).unwrap();
    let error = small_board.put(customer(&"x".repeat(1_000))).unwrap_err();
    assert_eq!(error.limit.as_ref().unwrap().limit, "blackboard_bytes_max");
    assert_eq!(error.kind, ErrorKind::Resources);
    assert_eq!([ids(&one_entry_board), ids(&small_board)], [["a"], ["a"]]);
}

// attack: B20
#[test]
fn the_size_of_an_object_includes_the_memory_of_its_small_values() {
    let board = MemoryBlackboard::with_limits(BlackboardLimits {
        entries_max: 10,
        bytes_max: 100_000,
    });
    let error = board
        .put(Artifact::new("k", json!(vec![json!({}); 1_000])))
        .unwrap_err();
    assert_eq!(error.limit.as_ref().unwrap().limit, "blackboard_bytes_max");
    board.put(Artifact::new("k", json!("x".repeat(90_000)))).unwrap();
}

// accept: 72
#[test]
fn a_child_board_inherits_objects_and_shares_only_new_objects_of_the_chosen_types() {
    let parent = MemoryBlackboard::new();
    parent.put(customer("a")).unwrap();
    let child = parent.new_child();
    child.put_named("found", customer("b")).unwrap();
    child.put(Artifact::new("Note", json!({"id": "n"}))).unwrap();
    parent.put(customer("late")).unwrap();
    assert_eq!(ids(&*child), ["a", "b", "n"]);
    assert_eq!(ids(&parent), ["a", "late"], "nothing is shared yet");
    BlackboardSharing::Nothing.apply(&*child, &parent).unwrap();
    BlackboardSharing::Kinds(vec!["customer".to_owned()])
        .apply(&*child, &parent)
        .unwrap();
    assert_eq!(
        ids(&parent),
        ["a", "late", "b"],
        "inherited objects are not shared back"
    );
    assert_eq!(parent.get("found").unwrap().value()["id"], "b");
    BlackboardSharing::All.apply(&*child, &parent).unwrap();
    assert_eq!(ids(&parent), ["a", "late", "b", "b", "n"]);
}

// accept: 140
#[test]
fn context_without_blackboard_returns_an_error() {
    let error = ToolContext::new().blackboard().err().unwrap();
    assert!(error.to_string().contains("no blackboard"), "{error}");
    let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    let context = ToolContext::new().with_blackboard(board.clone());
    context.blackboard().unwrap().put(customer("a")).unwrap();
    assert_eq!(ids(&*board), ["a"]);
}
