//! `toolwit test`.

use crate::guests::{DRAW, SETTINGS};
use crate::support::Workspace;

/// Returns a component with test cases that have grants.
fn workspace(grants: &str) -> Workspace {
    Workspace::new()
        .file("project/settings.wasm", wat::parse_str(SETTINGS).unwrap())
        .file("project/data/in.txt", "")
        .file(
            "project/tests.toml",
            format!(
                "[[test]]\nname = \"greets\"\ntool = \"greet\"\nresult = \"hello\"\n\
                 grants = {{ config = {{ greeting = \"hello\" }}, {grants} }}\n\
                 [[test]]\nname = \"is silent\"\ntool = \"greet\"\nresult = \"nothing\"\n"
            ),
        )
}

// attack: J12
#[test]
fn grants_of_cases_that_reach_outside_of_their_directory_need_an_option() {
    let test = ["test", "project/settings.wasm"];
    let inside = workspace("files = [{ host = \"./data\", guest = \"/data\", access = \"read-write\" }]").run(&test);
    assert_eq!(inside.code, Some(0), "{inside}");
    assert!(inside.stdout.contains("2 tests: 2 passed"), "{inside}");
    let outside = tempfile::tempdir().unwrap();
    let outside = format!("files = [{{ host = {:?}, guest = \"/data\" }}]", outside.path());
    for (grants, listed) in [
        (&*outside, "files"),
        ("env = [{ name = \"OPENAI_API_KEY\" }]", "env OPENAI_API_KEY"),
        (
            "http = [{ scheme = \"http\", host = \"127.0.0.1\", methods = [\"GET\"] }]",
            "127.0.0.1",
        ),
    ] {
        let workspace = workspace(grants);
        let refused = workspace.run(&test);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused}");
        assert!(
            refused.stderr.contains(listed) && refused.stderr.contains("`--allow-grants`"),
            "{refused}"
        );
        let without = workspace.run(&[&test[..], &["--filter", "silent"]].concat());
        assert_eq!(
            without.code,
            Some(0),
            "the case that has the grant does not run: {without}"
        );
        let allowed = workspace.run(&[&test[..], &["--allow-grants"]].concat());
        assert_eq!(allowed.code, Some(0), "{allowed}");
    }
}

// attack: Q5
#[test]
fn cases_of_a_component_for_wasi_3_run_only_with_the_switch() {
    let workspace = Workspace::new()
        .file("draw/draw.wasm", wat::parse_str(DRAW).unwrap())
        .file("draw/tests.toml", "[[test]]\nname = \"draws\"\ntool = \"draw\"\n");
    let refused = workspace.run(&["test", "draw"]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (Some(3), ""),
        "no case can run: {refused}"
    );
    assert!(
        refused.stderr.contains("WASI 0.3 is disabled") && refused.stderr.contains("`--wasi-p3`"),
        "{refused}"
    );
    let passed = workspace.run(&["test", "draw", "--wasi-p3"]);
    assert_eq!(passed.code, Some(0), "{passed}");
    assert!(passed.stdout.contains("1 test: 1 passed"), "{passed}");
}
