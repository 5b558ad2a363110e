#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::event::visible_tools;
use toolwit_core::{NativeTool, ToolResult};

fn tool(name: &str) -> Arc<dyn Tool> {
    let tool = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text(""))
    });
    Arc::new(tool.unwrap())
}

fn name(name: &str) -> ToolName {
    ToolName::parse(name).unwrap()
}

/// Returns a toolbox with the initial tool `base` and a limit of four declared tools, at the beginning of a turn.
fn toolbox() -> Toolbox {
    let mut set = ToolSet::new();
    set.add(tool("base"));
    let limits = LoopLimits {
        tools_max: 4,
        tools_warn: 3,
        ..LoopLimits::default()
    };
    let mut toolbox = Toolbox::new(set, ToolDelivery::List, &limits);
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
fn the_size_of_the_definitions_changes_with_the_declared_tools() {
    let mut toolbox = toolbox();
    let bytes_per_tool = toolbox.definition_bytes();
    assert_eq!(bytes_per_tool, r#"{"type":"object"}"#.len());
    add(&mut toolbox, &["a", "b"]);
    assert_eq!(toolbox.definition_bytes(), 3 * bytes_per_tool);
    toolbox.apply(Injection::remove(vec![ToolId::native("a")]), &name("base"));
    toolbox.start_turn();
    assert_eq!(toolbox.definition_bytes(), 2 * bytes_per_tool);
}

#[test]
fn the_least_recently_used_injected_tool_is_evicted_first() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b", "c"]);
    toolbox.mark_called(&name("a"));
    let events = add(&mut toolbox, &["d"]);
    assert!(
        events.contains(&Event::ToolsEvicted { names: vec![name("b")] }),
        "{events:?}"
    );
    assert_eq!(declared(&toolbox), ["base", "a", "c", "d"]);
    assert_eq!(
        toolbox.start_turn().len(),
        4,
        "a new turn does not restore hidden tools"
    );
}

#[test]
fn calling_a_hidden_tool_restores_it_and_evicts_another() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b", "c"]);
    add(&mut toolbox, &["d"]);
    let events = toolbox.mark_called(&name("a"));
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
fn removed_tools_are_evicted_first() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b", "c"]);
    toolbox.apply(Injection::remove(vec![ToolId::native("c")]), &name("base"));
    assert_eq!(
        declared(&toolbox),
        ["base", "a", "b", "c"],
        "a removed tool stays declared"
    );
    add(&mut toolbox, &["d"]);
    assert_eq!(declared(&toolbox), ["base", "a", "b", "d"]);
}

#[test]
fn the_last_of_too_many_new_tools_are_evicted() {
    let mut toolbox = toolbox();
    let events = add(&mut toolbox, &["a", "b", "c", "d", "e"]);
    assert_eq!(declared(&toolbox), ["base", "a", "b", "c"]);
    let turn_start = Event::TurnStarted {
        loop_id: String::new(),
        turn: 1,
        tools: vec![name("base")],
        prompt: None,
        answer_schema: None,
    };
    assert_eq!(
        visible_tools([turn_start].iter().chain(&events)),
        toolbox.declared_names()
    );
}

#[test]
fn the_warning_is_emitted_once_each_time_the_number_reaches_the_limit() {
    let mut toolbox = toolbox();
    let has_warning = |events: &[Event]| {
        events
            .iter()
            .any(|event| matches!(event, Event::ManyToolsDeclared { .. }))
    };
    assert!(!has_warning(&add(&mut toolbox, &["a"])));
    assert!(has_warning(&add(&mut toolbox, &["b"])));
    assert!(!has_warning(&add(&mut toolbox, &["c"])));
}

#[test]
fn adding_a_tool_again_with_the_same_definition_replaces_only_its_implementation() {
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

#[test]
fn adding_a_tool_again_declares_its_new_definition_at_the_same_position() {
    let mut toolbox = toolbox();
    add(&mut toolbox, &["a", "b"]);
    let schema = json!({"type": "object", "required": ["x"]});
    let redefined = NativeTool::new("a", "", schema.clone(), |_, _| async { Ok(ToolResult::text("")) });
    let events = toolbox.apply(Injection::add(vec![Arc::new(redefined.unwrap())]), &name("base"));
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::ToolsRedefined { names, .. } if *names == [name("a")])),
        "{events:?}"
    );
    assert_eq!(declared(&toolbox), ["base", "a", "b"]);
    assert_eq!(*toolbox.declared()[1].definition.input_schema, schema);
}

// accept: 40
#[test]
fn the_limit_on_declared_tools_includes_the_initial_tools() {
    let limits = LoopLimits {
        tools_max: 3,
        tools_warn: 3,
        ..LoopLimits::default()
    };
    let set = ["a", "b", "c", "d", "e"].iter().map(|name| tool(name)).collect();
    let mut toolbox = Toolbox::new(set, ToolDelivery::List, &limits);
    toolbox.start_turn();
    let events = toolbox.limit_declared();
    let evicted = vec![name("e"), name("d")];
    assert_eq!(
        events,
        [
            Event::ToolsEvicted { names: evicted },
            Event::ManyToolsDeclared { count: 3 }
        ]
    );
    assert_eq!(declared(&toolbox), ["a", "b", "c"]);
    toolbox.apply(Injection::add(vec![tool("new")]), &name("a"));
    assert_eq!(
        declared(&toolbox),
        ["a", "b", "new"],
        "a tool that was just injected is declared"
    );
    toolbox.mark_called(&name("e"));
    assert_eq!(
        declared(&toolbox),
        ["a", "b", "e"],
        "a hidden tool is declared again when it is called"
    );
    toolbox.start_turn();
    assert!(toolbox.limit_declared().is_empty());
    assert_eq!(declared(&toolbox).len(), 3);
}
