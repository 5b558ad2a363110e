//! `toolwit show`.

use insta::assert_snapshot;

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
