//! Interceptors and WASI 0.3 on the command line.

use crate::guests::{DRAW, PLAIN, masking_interceptor};
use crate::support::{Workspace, accept};

#[test]
fn without_a_configured_interceptor_nothing_is_called() {
    let workspace = Workspace::with("plain", PLAIN);
    let called = workspace.run(&["call", "add", "a=1", "b=2", "--interceptor", "quota"]);
    assert_eq!(called.code, Some(2), "{called}");
    assert!(
        called.stderr.contains("the interceptor `quota` is not installed"),
        "{called}"
    );
    let called = workspace.run(&["call", "add", "a=1", "b=2", "--interceptor", "plain"]);
    assert_eq!(called.code, Some(2), "{called}");
    assert!(
        called.stderr.contains("does not export `toolwit:plugin/interceptor`"),
        "{called}"
    );
    for wrong in ["", "quota=", "../quota"] {
        let called = workspace.run(&["call", "add", "a=1", "b=2", "--interceptor", wrong]);
        assert_eq!(called.code, Some(2), "{called}");
    }
    for server in [&["mcp"][..], &["serve", "--http", "127.0.0.1:0"][..]] {
        let wanted = ["--plugins", "tools", "--interceptor", "quota"];
        let served = workspace.run(&[server, &wanted[..]].concat());
        assert_eq!(served.code, Some(2), "{served}");
        assert!(
            served.stderr.contains("the interceptor `quota` is not installed"),
            "{served}"
        );
    }
    // Commands that call nothing do not need the interceptor.
    assert_eq!(workspace.run(&["list"]).code, Some(0));
}

// attack: Q1
#[test]
fn nothing_is_called_if_an_interceptor_covers_a_tool_that_does_not_exist() {
    let workspace = Workspace::with("plain", PLAIN).file("tools/mask.wasm", masking_interceptor("secret"));
    let call = |interceptor: &str| workspace.run(&["call", "add", "a=1", "b=2", "--interceptor", interceptor]);
    let mistyped = call("mask=adb");
    assert_eq!(mistyped.code, Some(2), "{mistyped}");
    assert!(
        mistyped
            .stderr
            .contains("the interceptor `mask` covers the tool `adb`, which does not exist"),
        "{mistyped}"
    );
    assert!(!call("mask=add").stderr.contains("does not exist"));
}

// attack: J8
#[test]
fn interceptors_of_a_project_apply_after_acceptance_and_stay() {
    let project = "[[interceptors]]\nplugin = \"absent\"\ntools = [\"add\"]\n";
    let workspace = Workspace::with("plain", PLAIN).file("toolwit.toml", project);
    let called = workspace.run(&["call", "add", "a=1", "b=2"]);
    assert_eq!(called.code, Some(0), "{called}");
    assert!(called.stderr.contains("`toolwit trust`"), "{called}");
    let shown = workspace.run(&["trust"]);
    assert!(shown.stdout.contains("absent=add"), "{shown}");
    accept(&workspace);
    assert_eq!(workspace.run(&["call", "add", "a=1", "b=2"]).code, Some(2));
    let workspace = workspace.file("toolwit.toml", "");
    assert_eq!(
        workspace.run(&["call", "add", "a=1", "b=2"]).code,
        Some(2),
        "a plugin that can write to the project cannot remove it"
    );
}

// attack: Q5, attack: J8
#[test]
fn wasi_3_needs_the_switch_or_an_accepted_project() {
    let workspace = Workspace::with("draw", DRAW);
    let refused = workspace.run(&["call", "draw"]);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("`--wasi-p3`") && refused.stderr.contains("no security patches"),
        "{refused}"
    );
    let called = workspace.run(&["call", "draw", "--wasi-p3"]);
    assert!(
        called.code == Some(0) && called.stdout.trim().parse::<u64>().is_ok(),
        "{called}"
    );
    // The metadata database has the component now.
    let refused = workspace.run(&["call", "draw"]);
    assert!(refused.stderr.contains("`--wasi-p3`"), "{refused}");
    let workspace = workspace.file("toolwit.toml", "[sandbox]\nwasi_p3 = true\n");
    assert_ne!(workspace.run(&["call", "draw"]).code, Some(0));
    accept(&workspace);
    assert_eq!(workspace.run(&["call", "draw"]).code, Some(0));
}
