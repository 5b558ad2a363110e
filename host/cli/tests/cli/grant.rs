//! `toolwit grant`, `revoke` and `explain`.

use serde_json::{Value, json};

use crate::guests::{FILES, PLAIN, SETTINGS};
use crate::support::Workspace;

/// Returns a workspace with a plugin that reads settings, and a file of grants.
pub(crate) fn workspace() -> Workspace {
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
        shown.contains("needs: greeting (what to say), which is missing\n"),
        "{shown}"
    );
    assert!(
        shown.contains("needs: accent, which is optional and missing\n"),
        "{shown}"
    );
    let granted = workspace.run(&["grant", "settings", "--config", "greeting=hello", "--keyvalue", "1MiB"]);
    let idle = "warning: the keyvalue rule has no effect, because settings does not import the capability\n";
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

// attack: D7, J7
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
    std::thread::scope(|threads| {
        for number in 0..CHANGES {
            let (key, workspace) = (format!("key{number}"), &workspace);
            threads.spawn(move || {
                let revoked = workspace.run(&["revoke", "settings", "config", &key]);
                assert_eq!(revoked.code, Some(0), "{revoked}");
            });
        }
    });
    let (_, shown) = workspace.json(&["grant", "settings", "--json"]);
    assert_eq!(shown["has"], json!([]), "{shown}");
}

#[test]
fn denied_access_is_printed_with_the_grant_that_allows_it() {
    let workspace = workspace();
    let denied = workspace.run(&["call", "greet"]);
    assert_eq!((denied.code, denied.stdout.trim()), (Some(0), "nothing"), "{denied}");
    assert!(
        denied
            .stderr
            .contains("denied: settings: read the setting `greeting`: no grant names the plugin\n"),
        "{denied}"
    );
    assert!(
        denied
            .stderr
            .contains("hint: toolwit grant settings --config greeting=VALUE\n"),
        "{denied}"
    );
    let (code, document) = workspace.json(&["call", "greet", "--json"]);
    assert_eq!((code, &document["denied"][0]["plugin"]), (Some(0), &json!("settings")));
    assert_eq!(
        document["denied"][0]["missing_grant"],
        json!({"plugin": "settings", "key": "config", "value": "greeting"})
    );
    workspace.run(&["grant", "settings", "--config", "greeting=hello"]);
    let allowed = workspace.run(&["call", "greet"]);
    assert_eq!(
        (allowed.stdout.trim(), allowed.stderr.as_str()),
        ("hello", ""),
        "{allowed}"
    );
    let (_, document) = workspace.json(&["call", "greet", "--json"]);
    assert_eq!(document.get("denied"), None, "{document}");
}

#[test]
fn replaced_component_announces_the_grants_that_it_lost() {
    let workspace = workspace();
    workspace.run(&["grant", "settings", "--config", "greeting=hello"]);
    let workspace = workspace.and("settings", &SETTINGS.replace("\"nothing\"", "\"no more\""));
    let called = workspace.run(&["call", "greet"]);
    assert!(
        called
            .stderr
            .contains("denied: settings: use its grant `config greeting`: the plugin has changed"),
        "{called}"
    );
    workspace.run(&["grant", "settings", "--config", "greeting=hello again"]);
    let called = workspace.run(&["call", "greet"]);
    assert_eq!(
        (called.stdout.trim(), called.stderr.as_str()),
        ("hello again", ""),
        "{called}"
    );
}

#[test]
fn grant_that_cannot_be_enforced_is_refused_and_found() {
    let workspace = Workspace::with("files", FILES)
        .and("plain", PLAIN)
        .variable("TOOLWIT_GRANTS", "own/grants.toml")
        .file("own/grants.toml", "version = 1\n");
    std::fs::create_dir(workspace.path().join("data")).unwrap();
    let look = || workspace.run(&["call", "look"]);
    assert_eq!(look().stdout.trim(), "7");
    let home = format!("{}::/home", workspace.path().display());
    let refused = workspace.run(&["grant", "files", "--read", &home]);
    assert_eq!(
        refused.code,
        Some(2),
        "the directory contains the metadata database: {refused}"
    );
    assert!(refused.stderr.contains("belongs to the host"), "{refused}");
    let text = std::fs::read_to_string(workspace.path().join("own/grants.toml")).unwrap();
    assert_eq!(text, "version = 1\n", "nothing is written");
    let granted = workspace.run(&["grant", "files", "--read", "data::/data"]);
    assert_eq!((granted.code, look().code), (Some(0), Some(0)), "{granted}");

    // The directory disappears after it was granted: the rule allows nothing, and the plugin can be called.
    std::fs::remove_dir(workspace.path().join("data")).unwrap();
    assert_eq!(look().stdout.trim(), "7");
    let sum = workspace.run(&["call", "add", r#"{"a": 1, "b": 2}"#]);
    assert_eq!(
        (sum.code, sum.stdout.trim()),
        (Some(0), "3"),
        "another plugin works: {sum}"
    );
    let doctor = workspace.run(&["doctor"]);
    assert_eq!(doctor.code, Some(2), "{doctor}");
    assert!(
        doctor
            .stdout
            .contains("a rule of files allows nothing: the grant at line "),
        "{doctor}"
    );
    let explained = workspace.run(&["explain", "files", "read /data/a"]);
    assert_eq!(explained.code, Some(4), "{explained}");
    assert!(explained.stdout.contains("cannot be enforced"), "{explained}");
    let revoked = workspace.run(&["revoke", "files", "files", "read"]);
    assert_eq!((revoked.code, look().code), (Some(0), Some(0)), "{revoked}");
}

#[test]
fn configuration_directory_is_not_granted() {
    let workspace = Workspace::with("files", FILES)
        .variable("TOOLWIT_GRANTS", "own/grants.toml")
        .file(".home/.config/toolwit/projects/other.toml", "version = 1\n")
        .file(".home/.config/other/file", "");
    let grant = |directory: &str| {
        let rule = format!("{}::/out", workspace.path().join(directory).display());
        workspace.run(&["grant", "files", "--write", &rule])
    };
    for directory in [".home", ".home/.config/toolwit", ".home/.config/toolwit/projects"] {
        let refused = grant(directory);
        assert_eq!(refused.code, Some(2), "{directory}: {refused}");
        assert!(refused.stderr.contains("belongs to the host"), "{refused}");
    }
    let granted = grant(".home/.config/other");
    assert_eq!(granted.code, Some(0), "{granted}");
}

#[test]
fn revoke_removes_one_rule_or_all_and_refuses_a_name_without_grants() {
    let workspace = workspace();
    let unknown = workspace.run(&["revoke", "settings"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(unknown.stderr.contains("has no grant for `settings`"), "{unknown}");
    workspace.run(&[
        "grant",
        "settings",
        "--config",
        "greeting=hello",
        "--http",
        "a.example",
        "--http",
        "b.example",
    ]);
    let unknown = workspace.run(&["revoke", "setings"]);
    assert!(unknown.stderr.contains("it has grants for `settings`"), "{unknown}");
    let none = workspace.run(&["revoke", "settings", "config", "farewell"]);
    assert_eq!(none.code, Some(2), "{none}");
    assert!(none.stderr.contains("has no rule for `config farewell`"), "{none}");
    let several = workspace.run(&["revoke", "settings", "http"]);
    assert!(several.stderr.contains("has several rules for `http`"), "{several}");
    let one = workspace.run(&["revoke", "settings", "http GET,HEAD https://a.example:443/"]);
    assert_eq!(one.code, Some(0), "{one}");
    let has = |workspace: &Workspace| workspace.json(&["grant", "settings", "--json"]).1["has"].clone();
    assert_eq!(
        has(&workspace),
        json!(["http GET,HEAD https://b.example:443/", "config greeting"])
    );
    assert_eq!(workspace.run(&["revoke", "settings"]).code, Some(0));
    assert_eq!(has(&workspace), json!([]));
}

#[test]
fn repeated_grants_do_not_accumulate() {
    let workspace = workspace();
    let grant = |config: &str| workspace.run(&["grant", "settings", "--config", config, "--http", "a.example"]);
    grant("greeting=hello");
    let text = || std::fs::read_to_string(workspace.path().join("grants.toml")).unwrap();
    let before = text();
    let again = grant("greeting=hello");
    assert!(
        again.stderr.contains("already granted to settings: config greeting"),
        "{again}"
    );
    assert_eq!(text(), before);
    grant("greeting=good day");
    assert_eq!(text().matches("[[grant]]").count(), 1, "{}", text());
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "good day");
}

#[test]
fn grants_are_shown_with_their_duration() {
    let workspace = workspace();
    workspace.run(&["grant", "settings", "--config", "greeting=hello", "--once"]);
    workspace.run(&["grant", "settings", "--http", "a.example", "--session"]);
    let shown = || workspace.run(&["grant", "settings"]).stdout;
    assert!(
        shown().contains("has: config greeting (once)\n") && shown().contains("a.example:443/ (session)\n"),
        "{}",
        shown()
    );
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "hello");
    assert!(shown().contains("has: config greeting (once, used)\n"), "{}", shown());
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "nothing");
    let (_, document) = workspace.json(&["grant", "settings", "--json"]);
    assert_eq!(document["has"], json!([]), "{document}");
    assert_eq!(document["grants"][0]["used"], true, "{document}");
    // A used grant does not become unused when one of its rules is revoked, and a new one replaces it.
    workspace.run(&["grant", "settings", "--config", "greeting=hello", "--once"]);
    let text = std::fs::read_to_string(workspace.path().join("grants.toml")).unwrap();
    assert_eq!(text.matches("scope = \"once\"").count(), 1, "{text}");
}

// attack: L9
#[test]
fn one_of_several_processes_gets_a_grant_for_one_call() {
    let workspace = workspace();
    let record = workspace.path().join("grants.toml.used");
    let grant_once = || workspace.run(&["grant", "settings", "--config", "greeting=hello", "--once"]);
    let greet = || workspace.run(&["call", "greet"]).stdout.trim().to_owned();
    assert_eq!(greet(), "nothing", "the component is compiled and cached");
    for scope in ["--once", "--session"] {
        workspace.run(&["grant", "settings", "--config", "greeting=hello", scope]);
        let calls: Vec<_> = (0..6).map(|_| workspace.start(&["call", "greet"])).collect();
        let answers = calls.into_iter().map(|call| call.wait_with_output().unwrap().stdout);
        let greeted = answers.filter(|answer| answer.starts_with(b"hello")).count();
        assert_eq!(greeted, 1, "{scope}");
        let explained = workspace.run(&["explain", "settings", "config", "greeting"]);
        assert!(explained.stdout.contains("used up"), "{explained}");
        workspace.run(&["revoke", "settings"]);
    }
    // A record that an interrupted write has shortened grants nothing.
    grant_once();
    let complete = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &complete[..complete.len() / 2 + 7]).unwrap();
    let explained = workspace.run(&["explain", "settings", "config", "greeting"]);
    assert!(explained.stdout.contains("could not be recorded"), "{explained}");
    assert_eq!(greet(), "nothing");
    std::fs::write(&record, complete).unwrap();
    assert_eq!((greet(), greet()), ("hello".to_owned(), "nothing".to_owned()));
}
