//! `toolwit add`, `remove`, `pack`, `cache` and `doctor`, and the database that commands share.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::guests::{FOREIGN, PLAIN, PLAIN_WIT, SETTINGS};
use crate::support::{Run, Workspace};

/// Returns the output of a run without the temporary directory and the size of the code cache, which all tests share.
fn normalized_output(run: &Run, workspace: &Workspace) -> String {
    let directory = workspace.path().to_str().unwrap();
    let mut text = String::new();
    for line in run.to_string().replace(directory, "…").lines() {
        let depends_on_machine = line.contains("in the code cache") || line.contains("files and connections open");
        if !depends_on_machine {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn package_is_added_replaced_on_request_and_removed() {
    let workspace = Workspace::new()
        .file("new/plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file(
            "new/plain.toml",
            "version = \"1.2.0\"\nuse_case = \"When numbers are added\"\n",
        )
        .file("bad/foreign.wasm", wat::parse_str(FOREIGN).unwrap());
    assert_snapshot!(workspace.run(&["add", "new/plain.wasm"]), @"
    exit: 0

    --- stdout
    tools/plain.wasm

    --- stderr
    added plain: 6 tools
    ");
    let (_, listed) = workspace.json(&["list", "--json"]);
    assert_eq!(listed["plugins"][0]["version"], "1.2.0");
    assert_eq!(listed["plugins"][0]["tier"], "rich");
    assert_snapshot!(workspace.run(&["add", "new"]), @"
    exit: 2

    --- stderr
    error: there is a package `plain` already, in tools/plain.wasm
    hint: replace it with `--replace`
    ");
    let workspace = workspace.file("new/plain.toml", "version = \"1.3.0\"\n");
    let (code, document) = workspace.json(&["add", "new", "--replace", "--json"]);
    assert_eq!(
        (code, &document["added"][0]["replaced"]),
        (Some(0), &json!(true)),
        "{document}"
    );
    assert_eq!(document["added"][0]["version"], "1.3.0");
    let refused = workspace.run(&["add", "bad"]);
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(refused.stderr.contains("acme:cloud/api"), "{refused}");
    assert_snapshot!(workspace.run(&["remove", "plain"]), @"
    exit: 0

    --- stderr
    removed tools/plain.wasm
    removed tools/plain.toml
    ");
    assert_snapshot!(workspace.run(&["remove", "plain"]), @"
    exit: 2

    --- stderr
    error: there is no package `plain`
    hint: the directory has no packages
    ");
}

#[test]
fn packed_component_is_a_package_in_one_file() {
    let workspace = Workspace::new()
        .file("plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file(
            "plain.toml",
            "version = \"2.0.0\"\ncategory = \"numbers\"\n[[tools]]\nexport = \"add\"\nuse_case = \"For sums\"\n",
        );
    let packed = workspace.run(&["pack", "plain.wasm", "--out", "tools/plain.wasm"]);
    assert_eq!(
        (packed.code, packed.stdout.as_str()),
        (Some(0), "tools/plain.wasm\n"),
        "{packed}"
    );
    let (_, listed) = workspace.json(&["list", "--json"]);
    let plain = &listed["plugins"][0];
    assert_eq!((&plain["version"], &plain["tier"]), (&json!("2.0.0"), &json!("rich")));
    assert!(
        plain["tools"][0]["description"].as_str().unwrap().contains("For sums"),
        "{plain}"
    );
    let workspace = workspace.file("plain.toml", format!("use_case = \"{}\"", "x".repeat(300 << 10)));
    let large = workspace.run(&["pack", "plain.wasm"]);
    assert_ne!(large.code, Some(0), "no host would read it: {large}");
    assert!(large.stderr.contains("plain.toml"), "{large}");
    let workspace = workspace.file("plain.toml", "[[tools]]\nexport = \"subtract\"\n");
    let wrong = workspace.run(&["pack", "plain.wasm"]);
    assert_eq!(wrong.code, Some(3), "{wrong}");
    assert!(
        wrong.stderr.contains("`subtract`") && wrong.stderr.contains("`add`"),
        "{wrong}"
    );
}

#[test]
fn component_is_packed_with_wit_alone() {
    let workspace = Workspace::new()
        .file("plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("plain.wit", PLAIN_WIT);
    let packed = workspace.run(&["pack", "plain.wasm", "--out", "tools/plain.wasm"]);
    assert_eq!(
        (packed.code, packed.stdout.as_str()),
        (Some(0), "tools/plain.wasm\n"),
        "{packed}"
    );
    let (_, tool) = workspace.json(&["show", "halve", "--json"]);
    assert_eq!(tool["description"], "Halve an even number.", "the docs are in the file");
    assert_eq!(workspace.run(&["call", "halve", "number=4"]).stdout, "2\n");

    let elsewhere = Workspace::new()
        .file("plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("docs/plain.wit", PLAIN_WIT);
    let without = elsewhere.run(&["pack", "plain.wasm"]);
    assert!(
        without.code == Some(2) && without.stderr.contains("neither plain.toml nor plain.wit"),
        "{without}"
    );
    let packed = elsewhere.run(&["pack", "plain.wasm", "--wit", "docs/plain.wit"]);
    assert_eq!(packed.code, Some(0), "{packed}");
}

#[test]
fn a_changed_digest_is_reported_only_for_a_file_whose_content_changed() {
    let workspace = Workspace::new()
        .file("plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("plain.wit", PLAIN_WIT);
    let is_reported = |arguments: &[&str]| {
        let packed = workspace.run(arguments);
        assert_eq!(packed.code, Some(0), "{packed}");
        packed.stderr.contains("hint: the digest has changed")
    };
    let (in_place, to_other_file) = (
        ["pack", "plain.wasm"],
        ["pack", "plain.wasm", "--out", "tools/plain.wasm"],
    );
    assert!(!is_reported(&to_other_file), "the file is new");
    assert!(is_reported(&in_place));
    assert!(!is_reported(&in_place), "the file has its docs already");
    assert!(!is_reported(&to_other_file), "the other file has the same content");
}

#[test]
fn cache_is_shown_limited_and_emptied() {
    let workspace = Workspace::with("plain", PLAIN);
    let cache = workspace.path().join("cache").display().to_string();
    let workspace = workspace.variable("XDG_CACHE_HOME", cache);
    assert_eq!(workspace.run(&["call", "add", r#"{"a": 1, "b": 2}"#]).stdout, "3\n");
    let (_, listed) = workspace.json(&["list", "--json"]);
    assert_eq!(listed["plugins"][0]["code"], "compiled");
    let (code, cache) = workspace.json(&["cache", "--json"]);
    assert_eq!((code, &cache["entries"]), (Some(0), &json!(1)), "{cache}");
    assert!(
        cache["bytes"].as_u64().unwrap() > 0 && cache["dropped"].is_null(),
        "{cache}"
    );
    let (_, capped) = workspace.json(&["cache", "cap", "1KiB", "--json"]);
    assert_eq!(
        (&capped["bytes_max"], &capped["entries"]),
        (&json!(1_024), &json!(0)),
        "{capped}"
    );
    assert_eq!(workspace.run(&["call", "add", r#"{"a": 1, "b": 2}"#]).stdout, "3\n");
    let (_, cache) = workspace.json(&["cache", "show", "--json"]);
    assert_eq!(
        (&cache["bytes_max"], &cache["entries"]),
        (&json!(1_024), &json!(0)),
        "the limit applies"
    );
    workspace.run(&["cache", "cap", "1GiB"]);
    workspace.run(&["call", "add", r#"{"a": 1, "b": 2}"#]);
    let cleaned = workspace.run(&["cache", "clean"]);
    assert!(cleaned.stderr.contains("removed 1 component,"), "{cleaned}");
    assert!(
        cleaned.stdout.starts_with("0 components, 0 bytes of 1.0 GiB"),
        "{cleaned}"
    );
}

#[test]
fn an_added_or_built_component_is_compiled_unless_that_is_refused() {
    let workspace = Workspace::new().file("plain.wasm", wat::parse_str(PLAIN).unwrap());
    let cache = workspace.path().join("cache").display().to_string();
    let workspace = workspace.variable("XDG_CACHE_HOME", cache);
    let entries = || workspace.json(&["cache", "--json"]).1["entries"].clone();

    let (_, added) = workspace.json(&["add", "plain.wasm", "--no-compile", "--json"]);
    assert_eq!(added["added"][0]["compiled"], false, "{added}");
    let (_, built) = workspace.json(&["build", "plain.wasm", "--out", "built", "--no-compile", "--json"]);
    assert_eq!(built["compiled"], false, "{built}");
    assert_eq!(entries(), 0);

    let (_, added) = workspace.json(&["add", "plain.wasm", "--replace", "--json"]);
    assert_eq!(
        (&added["added"][0]["compiled"], entries()),
        (&json!(true), json!(1)),
        "{added}"
    );
    workspace.run(&["cache", "clean"]);
    let (_, built) = workspace.json(&["build", "plain.wasm", "--out", "built", "--json"]);
    assert_eq!((&built["compiled"], entries()), (&json!(true), json!(1)), "{built}");
}

/// Returns the findings of a check.
fn findings<'a>(document: &'a Value, check: &str) -> Vec<&'a Value> {
    let all = document["findings"].as_array().unwrap();
    all.iter().filter(|finding| finding["check"] == check).collect()
}

// accept: 122
#[test]
fn doctor_reports_problems_and_working_fixes() {
    let workspace = Workspace::with("plain", PLAIN)
        .and("foreign", FOREIGN)
        .and("settings", SETTINGS)
        .file(
            "tools/settings.toml",
            "[[environment]]\nname = \"greeting\"\ndescription = \"what to say\"\nrequired = true\n",
        )
        .variable("TOOLWIT_GRANTS", "grants.toml")
        .file(
            "grants.toml",
            "version = 1\n[[grant]]\nplugin = \"absent\"\nany-version = true\nconfig = { a = \"b\" }\n",
        );
    workspace.run(&["call", "crash"]);
    let run = workspace.run(&["doctor"]);
    assert_snapshot!(normalized_output(&run, &workspace), @r#"
    exit: 3

    --- stdout
    problem  foreign is broken: it imports `acme:cloud/api@1.0.0`, which the host does not offer
             hint: compose it with a component that exports this import, or build it without
    ok       2 plugins can be used, with 7 tools
    warning  plain#crash failed when it was last called: the guest trapped: wasm `unreachable` instruction executed
             hint: a successful call clears this: `toolwit call plain#crash`
    problem  settings needs `greeting` (what to say), which is missing
             hint: `toolwit grant settings --config greeting=VALUE`; if a host receives it: `toolwit secret set greeting`, then `toolwit grant settings --secret greeting --to HOST --as bearer`
    warning  a grant names the plugin absent, which does not exist
             hint: `toolwit revoke absent` removes it
    ok       1 grant can be read
    ok       the metadata database is …/.data/toolwit/store.db
    warning  cargo is not on PATH, so that Rust plugins cannot be built
             hint: install a toolchain from https://rustup.rs; it is not needed to run plugins

    --- stderr
     WARN a grant names a plugin that does not exist plugin="absent"
    "#);
    let (code, document) = workspace.json(&["doctor", "--json"]);
    assert_eq!((code, &document["ok"]), (Some(3), &json!(false)), "{document}");
    assert_eq!(findings(&document, "health")[0]["state"], "warning");
    assert_eq!(findings(&document, "needs")[0]["subject"], "settings");

    // Each suggested fix works.
    workspace.run(&["remove", "foreign"]);
    workspace.run(&["revoke", "absent"]);
    let hint = findings(&document, "needs")[0]["suggestion"].as_str().unwrap();
    let command = hint.split('`').nth(1).unwrap().replace("VALUE", "hello");
    let words: Vec<_> = command.split(' ').skip(1).collect();
    assert_eq!(workspace.run(&words).code, Some(0), "{command}");
    assert_eq!(workspace.run(&["call", "settings#greet"]).stdout, "hello\n");
    let (code, document) = workspace.json(&["doctor", "--json"]);
    assert_eq!((code, &document["ok"]), (Some(0), &json!(true)), "{document}");
}

#[cfg(unix)]
#[test]
fn doctor_reports_the_toolchain_on_path() {
    let workspace = Workspace::new();
    let (code, document) = workspace.json(&["doctor", "--json"]);
    assert_eq!(
        (code, &findings(&document, "toolchain")[0]["state"]),
        (Some(0), &json!("warning")),
        "{document}"
    );
    let workspace = workspace.program("cargo", "echo 'cargo 1.95.0 (fake)'");
    let (code, document) = workspace.json(&["doctor", "--json"]);
    let finding = findings(&document, "toolchain")[0];
    assert_eq!((code, &finding["state"]), (Some(0), &json!("ok")), "{document}");
    assert!(
        finding["message"].as_str().unwrap().ends_with(": cargo 1.95.0 (fake)"),
        "{document}"
    );
}

// accept: 136, accept: 137
#[test]
fn missing_required_value_is_reported_and_does_not_break_the_tool() {
    let workspace = Workspace::with("settings", SETTINGS)
        .file(
            "tools/settings.toml",
            "[[environment]]\nname = \"greeting\"\nrequired = true\n",
        )
        .variable("TOOLWIT_GRANTS", "grants.toml")
        .file("grants.toml", "version = 1\n");
    assert_snapshot!(workspace.run(&["call", "greet"]), @"
    exit: 2

    --- stderr
    error: settings#greet: it needs `greeting`, which is not set
    hint: ask the user for it, then run `toolwit grant settings --config greeting=VALUE`; `toolwit doctor` checks it
    ");
    let (_, document) = workspace.json(&["doctor", "--json"]);
    assert!(findings(&document, "health").is_empty(), "{document}");
    workspace.run(&["grant", "settings", "--config", "greeting=hello"]);
    assert_eq!(workspace.run(&["call", "greet"]).stdout, "hello\n");
}

#[test]
fn second_command_reads_metadata_from_the_database() {
    let workspace = Workspace::with("plain", PLAIN).variable("TOOLWIT_STORE", "own/store.db");
    let file = workspace.path().join("tools/plain.wasm");
    let settled = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    let set_old = || {
        let file = std::fs::File::options().write(true).open(&file).unwrap();
        file.set_modified(settled).unwrap();
    };
    set_old();
    let (_, first) = workspace.json(&["list", "--json"]);
    // The file is not a component any more, but has the same length and time: it is not read again.
    let length = std::fs::metadata(&file).unwrap().len();
    std::fs::write(&file, vec![0; usize::try_from(length).unwrap()]).unwrap();
    set_old();
    let (_, second) = workspace.json(&["list", "--json"]);
    assert_eq!(first, second);
    let (_, uncached) = workspace.json(&["list", "--json", "--store", ":memory:"]);
    assert_eq!(uncached["plugins"][0]["status"], "broken");
    let wrong = workspace.run(&["list", "--store", "tools"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("hint:"), "{wrong}");
}

#[test]
fn call_of_a_broken_plugin_reports_the_cause() {
    let workspace = Workspace::with("plain", PLAIN).file("tools/plain.toml", "colour = \"red\"\n");
    let called = workspace.run(&["call", "plain"]);
    assert_eq!(called.code, Some(3), "{called}");
    assert!(
        called.stderr.contains("plain.toml:1:1: unknown field `colour`"),
        "{called}"
    );
}

// attack: L12
#[cfg(unix)]
#[test]
fn links_out_of_a_plugin_directory_are_neither_copied_nor_followed() {
    use std::os::unix::fs::symlink;
    let component = wat::parse_str(PLAIN).unwrap();
    let workspace = Workspace::new()
        .file("new/plain.wasm", &component)
        .file("outside/secret", "package root:secret;\n")
        .file("outside/kept/kept.wasm", &component)
        .file("outside/kept/kept.toml", "");
    let at = |path: &str| workspace.path().join(path);
    for extension in ["wit", "toml", "policy.yaml", "capabilities.json"] {
        let link = at("new/plain").with_extension(extension);
        symlink(at("outside/secret"), &link).unwrap();
        for source in ["new/plain.wasm", "new"] {
            let refused = workspace.run(&["add", source]);
            assert_eq!(refused.code, Some(2), "{refused}");
            assert!(refused.stderr.contains("a link that leads out"), "{refused}");
        }
        std::fs::remove_file(link).unwrap();
    }
    // A file that is too large to be read is not copied either.
    std::fs::File::create(at("new/plain.wit"))
        .unwrap()
        .set_len(3 << 30)
        .unwrap();
    let refused = workspace.run(&["add", "new/plain.wasm"]);
    assert!(
        refused.code != Some(0) && refused.stderr.contains("plain.wit cannot be copied"),
        "{refused}"
    );
    assert_eq!(std::fs::read_dir(at("tools")).unwrap().count(), 0);
    std::fs::remove_file(at("new/plain.wit")).unwrap();
    assert_eq!(workspace.run(&["add", "new/plain.wasm"]).code, Some(0));

    symlink(at("outside/kept"), at("tools/kept")).unwrap();
    let removed = workspace.run(&["remove", "kept"]);
    assert_eq!(removed.stderr, "removed tools/kept\n", "{removed}");
    assert!(!at("tools/kept").is_symlink());
    assert_eq!(std::fs::read_dir(at("outside/kept")).unwrap().count(), 2);
    for name in [".", ".."] {
        let workspace = Workspace::new().file(&format!("new/{name}.wasm"), &component);
        let refused = workspace.run(&["add", &format!("new/{name}.wasm")]);
        assert_eq!(refused.code, Some(3), "{refused}");
        assert!(refused.stderr.contains("starts with a dot"), "{refused}");
        let granted = workspace.run(&["grant", name, "--config", "a=b"]);
        assert_ne!(granted.code, Some(0), "{granted}");
    }
}
