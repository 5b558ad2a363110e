//! The key–value stores of plugins.

use crate::grant::workspace;
use crate::guests::NOTES;

#[test]
fn the_values_of_another_version_are_given_to_a_component_only_if_that_is_requested() {
    let workspace = workspace().and("notes", NOTES);
    let store = ["grant", "notes", "--keyvalue", "1KiB"];
    for _ in 0..2 {
        assert_eq!(workspace.run(&store).code, Some(0));
    }
    let workspace = workspace.and("notes", &NOTES.replace("i32.const 1", "i32.const 2"));
    let refused = workspace.run(&store);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("values of another version"), "{refused}");
    assert!(refused.stderr.contains("--keep-values"), "{refused}");
    let granted = workspace.run(&[&store[..], &["--keep-values"]].concat());
    assert_eq!(granted.code, Some(0), "{granted}");
    assert_eq!(workspace.run(&store).code, Some(0), "it was requested before");
}
