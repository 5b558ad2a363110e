//! Tools by role: `toolwit run --role`.

use serde_json::json;

use crate::guests::{COUNTER, PLAIN};
use crate::support::Workspace;

/// A scripted model that expects only the tools of the role.
const SCRIPT: &str = r#"
[[turn]]
expect.tools = "counter_new"
expect.no_tools = "greet"
answer = "Only counters."
"#;

const ROLE: [&str; 6] = ["run", "Count.", "--model", "scripted:script.toml", "--role", "counting"];

fn workspace() -> Workspace {
    let workspace = Workspace::with("counter", COUNTER).and("plain", PLAIN);
    workspace.file("script.toml", SCRIPT)
}

// accept: 94, accept: 95
#[test]
fn a_role_of_toolwit_toml_selects_the_tools_of_a_run() {
    let groups = "[build]\ncommand = ['make']\n\n[groups.counting]\nprovider = 'plugins'\ninclude = ['^counter_']\n";
    let (code, document) = workspace()
        .file("toolwit.toml", groups)
        .json(&[&ROLE[..], &["--json"]].concat());
    assert_eq!(
        (code, &document["answer"]),
        (Some(0), &json!("Only counters.")),
        "{document}"
    );
    let elsewhere = workspace().file("groups.toml", groups);
    let run = elsewhere.run(&[&ROLE[..], &["--groups", "groups.toml", "-q"]].concat());
    assert_eq!(run.stdout, "Only counters.\n", "{run}");
}

// accept: 94
#[test]
fn an_unknown_role_and_missing_groups_are_refused() {
    let run = workspace().run(&ROLE);
    assert!(run.stderr.contains("`toolwit.toml` does not exist"), "{run}");
    let run = workspace().file("toolwit.toml", "[groups.web]\n").run(&ROLE);
    assert!(
        run.stderr.contains("no tool group has the role `counting`") && run.stderr.contains("`web`"),
        "{run}"
    );
    let run = workspace()
        .file("toolwit.toml", "[groups.web]\nprovider = 'nobody'\n")
        .run(&ROLE);
    assert!(run.stderr.contains("provider `nobody`"), "{run}");
}
