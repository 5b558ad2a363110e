//! `toolwit show`.

use insta::assert_snapshot;
use serde_json::json;

use crate::guests::{COUNTER, PLAIN, PLAIN_WIT, RIVAL};
use crate::support::Workspace;

#[test]
fn show_prints_the_full_definition() {
    let workspace = Workspace::with("plain", PLAIN).file("tools/plain.wit", PLAIN_WIT);
    assert_snapshot!(workspace.run(&["show", "add"]), @"
    exit: 0

    --- stdout
    add
    plain#add
    effect: read (proved by the sandbox)

      Add two numbers. The sum must fit.

      It never wraps around.

    Arguments
      a: integer (0 to 4294967295)
      b: integer (0 to 4294967295)

    Result
      integer (0 to 4294967295)
    ");
}

#[test]
fn entities_in_the_result_are_shown_with_their_methods() {
    let workspace = Workspace::with("counter", COUNTER);
    assert_snapshot!(workspace.run(&["show", "counter_new"]), @"
    exit: 0

    --- stdout
    counter_new
    counter#[constructor]counter
    effect: read (proved by the sandbox)

      `counter_new(start: u32) -> entity` of `counter`.

    Arguments
      start: integer (0 to 4294967295)

    Result
      entity `counter`

    Entities in the result (their methods become tools)
      counter
          counter_next(counter_id: string) → integer (0 to 4294967295)
              `counter_next() -> u32` of `counter`.
          counter_break(counter_id: string)
              `counter_break()` of `counter`.
    ");
    let (_, method) = workspace.json(&["show", "counter_next", "--json"]);
    assert_eq!(method["id"], "counter#[method]counter.next");
    assert_eq!(method["plugin"], "counter");
    let effect = json!({"class": "read", "source": "sandbox", "is_proved": true});
    assert_eq!(method["effect"], effect);
}

#[test]
fn show_names_the_grant_with_which_a_tool_can_change_something() {
    let writer = r#"(component
        (import "wasi:keyvalue/store@0.2.0-draft2" (instance))
        (core module $m (func (export "f") (result i32) i32.const 1))
        (core instance $i (instantiate $m))
        (func (export "save") (result u32) (canon lift (core func $i "f"))))"#;
    let grants = "version = 1\n[[grant]]\nplugin = \"notes\"\nany-version = true\nkeyvalue = { quota = \"1KiB\" }\n";
    let workspace = Workspace::with("notes", writer)
        .file("tools/notes.toml", "effect = \"read\"\n")
        .file("grants.toml", grants);
    let without = workspace.run(&["show", "save"]).stdout;
    assert!(without.contains("effect: read (proved by the sandbox)"), "{without}");
    let granted = workspace.run(&["show", "save", "--grants", "grants.toml"]).stdout;
    let expected = "effect: write (its author claims read, which is not proved); the tool may use `keyvalue`";
    assert!(granted.contains(expected), "{granted}");
}

#[test]
fn an_ambiguous_name_is_refused_with_the_ids_to_choose_from() {
    let workspace = Workspace::with("plain", PLAIN).and("rival", RIVAL);
    assert_snapshot!(workspace.run(&["show", "add"]), @"
    exit: 2

    --- stderr
    error: 2 tools have the name `add`
    hint: call one by its id: `plain#add`, `rival#add`
    ");
    assert_eq!(workspace.run(&["show", "rival#add"]).code, Some(0));
}
