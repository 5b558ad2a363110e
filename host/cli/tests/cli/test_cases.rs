//! `toolwit test`.

use crate::guests::SETTINGS;
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
