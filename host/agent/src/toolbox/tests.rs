#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::event::visible_tools;
use toolwit_core::{NativeTool, ToolResult};

fn tool(name: &str) -> Arc<dyn Tool> {
    let made = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text(""))
    });
    Arc::new(made.unwrap())
}

fn name(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

/// A toolbox with the fixed tool `base` and room for four, at the beginning of a turn.
fn toolbox() -> Toolbox {
    let mut set = ToolSet::new();
    set.add(tool("base"));
    let limits = LoopLimits {
        tools_max: 4,
        tools_warn: 3,
        ..LoopLimits::default()
    };
    let mut toolbox = Toolbox::new(set, Delivery::List, &limits);
    toolbox.start_turn();
    toolbox
}

fn add(toolbox: &mut Toolbox, names: &[&str]) -> Vec<Event> {
    toolbox.apply(
        Injection::add(names.iter().map(|name| tool(name)).collect()),
        &name("base"),
    )
}

fn declared(toolbox: &Toolbox) -> Vec<&str> {
    toolbox.declared().iter().map(|tool| tool.name.as_str()).collect()
}

#[test]
fn those_not_used_for_longest_are_hidden_and_fixed_ones_never() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b", "c"]);
    toolbox.called(&name("a"));
    let events = add(&mut toolbox, &["d"]);
    assert!(
        events.contains(&Event::ToolsEvicted { names: vec![name("b")] }),
        "{events:?}"
    );
    assert_eq!(declared(&toolbox), ["base", "a", "c", "d"]);
    assert_eq!(toolbox.start_turn().len(), 4, "a new turn brings nothing hidden back");
}

#[test]
fn a_hidden_tool_that_is_called_comes_back_and_another_goes() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b", "c"]);
    add(&mut toolbox, &["d"]);
    let events = toolbox.called(&name("a"));
    assert_eq!(
        events,
        [
            Event::ToolsRestored { names: vec![name("a")] },
            Event::ToolsEvicted { names: vec![name("b")] }
        ]
    );
    assert_eq!(declared(&toolbox), ["base", "c", "d", "a"]);
}

#[test]
fn removed_tools_make_room_before_others_do() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b", "c"]);
    toolbox.apply(Injection::remove(vec![ToolId::native("c")]), &name("base"));
    assert_eq!(declared(&toolbox), ["base", "a", "b", "c"], "still declared");
    add(&mut toolbox, &["d"]);
    assert_eq!(declared(&toolbox), ["base", "a", "b", "d"]);
}

#[test]
fn of_more_than_there_is_room_for_the_last_ones_are_hidden() {
    let mut toolbox = toolbox();
    let events = add(&mut toolbox, &["a", "b", "c", "d", "e"]);
    assert_eq!(declared(&toolbox), ["base", "a", "b", "c"]);
    let start = Event::TurnStarted {
        loop_id: String::new(),
        turn: 1,
        tools: vec![name("base")],
    };
    assert_eq!(visible_tools([start].iter().chain(&events)), toolbox.declared_names());
}

#[test]
fn the_warning_comes_once_each_time_the_number_grows_to_many() {
    let mut toolbox = toolbox();
    let many = |events: &[Event]| events.iter().any(|event| matches!(event, Event::ToolsMany { .. }));
    assert!(!many(&add(&mut toolbox, &["a"])));
    assert!(many(&add(&mut toolbox, &["b"])));
    assert!(!many(&add(&mut toolbox, &["c"])));
}

#[test]
fn a_tool_that_is_added_again_runs_new_code_under_its_definition() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a"]);
    let before = Arc::as_ptr(&toolbox.declared()[1].definition);
    let events = add(&mut toolbox, &["a"]);
    assert_eq!(
        events,
        [Event::ToolsRebound {
            trigger: name("base"),
            names: vec![name("a")],
        }]
    );
    assert_eq!(Arc::as_ptr(&toolbox.declared()[1].definition), before);
}
