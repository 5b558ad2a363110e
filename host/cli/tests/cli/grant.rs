//! `toolwit grant`, `revoke`, `explain` and `secret`.

use serde_json::{Value, json};

use crate::guests::SETTINGS;
use crate::support::Workspace;

fn workspace() -> Workspace {
    Workspace::with("settings", SETTINGS)
        .variable("TOOLWIT_GRANTS", "grants.toml")
        .file("grants.toml", "version = 1 # of the operator\n")
}

// attack: D7
#[test]
fn a_grant_applies_until_it_is_revoked_and_both_are_logged() {
    let workspace = workspace();
    let greet = || workspace.run(&["call", "greet"]).stdout.trim().to_owned();
    assert_eq!(greet(), "nothing");
    let granted = workspace.run(&["grant", "settings", "--config", "greeting=hello"]);
    assert_eq!(granted.code, Some(0), "{granted}");
    assert_eq!(greet(), "hello");
    let shown = workspace.run(&["grant", "settings"]);
    assert!(
        shown.stdout.contains("imports: http, config") && shown.stdout.contains("has: config greeting"),
        "{shown}"
    );
    let revoked = workspace.run(&["revoke", "settings"]);
    assert_eq!(revoked.code, Some(0), "{revoked}");
    assert_eq!(greet(), "nothing");
    let text = std::fs::read_to_string(workspace.path().join("grants.toml")).unwrap();
    assert!(text.starts_with("version = 1 # of the operator\n"), "{text}");
    let log = std::fs::read_to_string(workspace.path().join("grants.toml.log")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["action"], &lines[0]["what"]),
        (&json!("grant"), &json!(["config greeting"]))
    );
    assert_eq!(
        (&lines[1]["action"], &lines[1]["plugin"]),
        (&json!("revoke"), &json!("settings"))
    );
}

// attack: H6
#[test]
fn a_replaced_component_has_no_grants_until_they_are_renewed() {
    let workspace = workspace();
    workspace.run(&["grant", "settings", "--config", "greeting=hello"]);
    let replaced = SETTINGS.replace("\"nothing\"", "\"no more\"");
    let workspace = workspace.and("settings", &replaced);
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "no more");
    let shown = workspace.run(&["grant", "settings"]);
    assert!(shown.stdout.contains("another version had: config greeting"), "{shown}");
}

// accept: 136
#[test]
fn a_plugin_is_shown_with_its_requirements_and_grants() {
    let needs = "[[environment]]\nname = \"greeting\"\ndescription = \"what to say\"\nrequired = true\n\
                 [[environment]]\nname = \"accent\"\n";
    let workspace = workspace().file("tools/settings.toml", needs);
    let shown = workspace.run(&["grant", "settings"]).stdout;
    assert!(
        shown.contains("needs: greeting (what to say), which is not granted\n"),
        "{shown}"
    );
    assert!(
        shown.contains("needs: accent, which is not granted and optional\n"),
        "{shown}"
    );
    let granted = workspace.run(&["grant", "settings", "--config", "greeting=hello", "--keyvalue", "1MiB"]);
    let idle = "warning: settings does not import keyvalue: the rule has no effect\n";
    assert_eq!(granted.stderr.matches("no effect").count(), 1, "{granted}");
    assert!(granted.stderr.contains(idle), "{granted}");
    let shown = workspace.run(&["grant", "settings"]).stdout;
    assert!(
        shown.contains("needs: greeting (what to say), which is granted\n"),
        "{shown}"
    );
    assert!(!shown.contains("hello"), "a value is not shown: {shown}");
    let (_, document) = workspace.json(&["grant", "settings", "--json"]);
    assert_eq!(document["needs"][0]["met"], true, "{document}");
    assert_eq!(document["needs"][1]["met"], false, "{document}");
}

#[test]
fn explain_names_the_deciding_rule() {
    let workspace = workspace();
    workspace.run(&["grant", "settings", "--http", "GET,POST https://a.example/v1"]);
    workspace.run(&["grant", "settings", "--http", "b.example"]);
    let ask = |what: &str| workspace.run(&["explain", "settings", what]);
    let allowed = ask("POST https://A.example/v1/x?y");
    assert_eq!(
        (allowed.code, allowed.stdout.trim()),
        (Some(0), "allowed: rule 1: GET,POST https://a.example:443/v1")
    );
    for (what, why) in [
        ("GET https://b.example:8443/a", "denied: rule 2 allows port 443 only"),
        (
            "DELETE https://a.example/v1",
            "denied: rule 1 allows GET and POST requests only",
        ),
        ("https://a.example/v2", "denied: rule 1 allows paths below /v1 only"),
        (
            "env HOME",
            "denied: the component does not import environment variables",
        ),
    ] {
        let denied = ask(what);
        assert_eq!((denied.code, denied.stdout.trim()), (Some(4), why), "{what}");
    }
    assert_eq!(ask("ftp://a.example/").code, Some(2));
}

// attack: D1, attack: D2, attack: D6
#[test]
fn an_invalid_grant_is_refused_and_nothing_is_written() {
    let workspace = workspace();
    let before = std::fs::read(workspace.path().join("grants.toml")).unwrap();
    for wrong in [
        &["grant", "absent", "--env", "A"][..],
        &["grant", "../settings", "--env", "A"],
        &["grant", "settings", "--http", "*.com"],
        &["grant", "settings", "--http", "ftp://a.example"],
        &["grant", "settings", "--read", "/etc"],
        &["grant", "settings", "--read", "/::/data"],
        &["grant", "settings", "--env", "A B"],
        &["grant", "settings", "--secret", "key"],
    ] {
        let run = workspace.run(wrong);
        assert_eq!(run.code, Some(2), "{wrong:?}: {run}");
    }
    assert_eq!(std::fs::read(workspace.path().join("grants.toml")).unwrap(), before);
    let broken = workspace.file("grants.toml", "version = 1\npermisions = 1\n");
    for command in [
        &["call", "greet"][..],
        &["grant", "settings", "--env", "A"],
        &["explain", "settings", "env A"],
    ] {
        let run = broken.run(command);
        assert_eq!(run.code, Some(2), "{run}");
        assert!(
            run.stderr.contains("line 2, column 1: unknown field `permisions`"),
            "{run}"
        );
    }
}

// attack: C19
#[test]
fn a_secret_is_stored_and_never_shown() {
    let workspace = Workspace::new();
    let secret = |arguments: &[&str], input: &str| {
        let arguments: Vec<_> = ["secret"]
            .iter()
            .chain(arguments)
            .chain(&["--secrets", "own/secrets.toml"])
            .copied()
            .collect();
        workspace.run_with_input(&arguments, input)
    };
    let set = secret(&["set", "weather-key"], "correct horse battery\n");
    assert_eq!(set.code, Some(0), "{set}");
    assert!(!set.to_string().contains("horse"));
    assert_eq!(secret(&["list"], "").stdout, "weather-key\n");
    let short = secret(&["set", "other"], "short\n");
    assert_eq!(short.code, Some(2), "{short}");
    assert!(
        !short.to_string().contains("short\n") && short.stderr.contains("8 bytes"),
        "{short}"
    );
    assert_eq!(secret(&["remove", "weather-key"], "").code, Some(0));
    assert_eq!(secret(&["list"], "").stdout, "");
}

// attack: D7
#[test]
fn concurrent_changes_are_not_lost() {
    const CHANGES: usize = 12;
    let workspace = workspace();
    std::thread::scope(|threads| {
        for number in 0..CHANGES {
            let config = format!("key{number}=value");
            let workspace = &workspace;
            threads.spawn(move || {
                let granted = workspace.run(&["grant", "settings", "--config", &config]);
                assert_eq!(granted.code, Some(0), "{granted}");
            });
        }
    });
    let (_, shown) = workspace.json(&["grant", "settings", "--json"]);
    assert_eq!(shown["has"].as_array().unwrap().len(), CHANGES, "{shown}");
}
