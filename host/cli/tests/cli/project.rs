//! Grants and limits of a project, which apply after they are accepted.

use crate::guests::SETTINGS;
use crate::support::{Workspace, accept};

#[test]
fn project_grants_apply_only_after_they_are_accepted() {
    let proposed = |value: &str| {
        format!(
            "version = 1\n[[grant]]\nplugin = \"settings\"\nany-version = true\nconfig = {{ greeting = \"{value}\" }}\n"
        )
    };
    let workspace = Workspace::with("settings", SETTINGS)
        .file("toolwit.toml", "[grants]\nfile = \"project.toml\"\n")
        .file("project.toml", proposed("hello"));
    let greet = || workspace.run(&["call", "greet"]);
    let called = greet();
    assert_eq!(
        called.stdout.trim(),
        "nothing",
        "a cloned project grants nothing: {called}"
    );
    assert!(called.stderr.contains("`toolwit trust`"), "{called}");
    let shown = workspace.run(&["trust"]);
    assert!(
        shown.stdout.contains("settings  any version") && shown.stdout.contains("config greeting = \"hello\""),
        "{shown}"
    );
    assert_eq!(greet().stdout.trim(), "nothing", "showing accepts nothing");
    let accept = || {
        let (_, document) = workspace.json(&["trust", "--json"]);
        workspace.run(&["trust", "--accept", document["digest"].as_str().unwrap()])
    };
    assert_eq!(
        workspace.run(&["trust", "--accept", "0000000000000000"]).code,
        Some(2),
        "other grants were shown"
    );
    let (_, document) = workspace.json(&["trust", "--json"]);
    let short = workspace.run(&["trust", "--accept", &document["digest"].as_str().unwrap()[..63]]);
    assert_eq!(
        short.code,
        Some(2),
        "another proposal may have the same characters: {short}"
    );
    assert_eq!(greet().stdout.trim(), "nothing");
    assert_eq!(accept().code, Some(0));
    let called = greet();
    assert_eq!(
        (called.stdout.trim(), called.stderr.as_str()),
        ("hello", ""),
        "{called}"
    );

    // A change of the project, as by `git pull`, has no effect.
    std::fs::write(workspace.path().join("project.toml"), proposed("changed")).unwrap();
    let called = greet();
    assert_eq!(called.stdout.trim(), "hello", "{called}");
    assert!(
        called.stderr.contains("have changed since they were accepted"),
        "{called}"
    );
    accept();
    assert_eq!(greet().stdout.trim(), "changed");
    std::fs::write(workspace.path().join("toolwit.toml"), "").unwrap();
    assert_eq!(
        greet().stdout.trim(),
        "changed",
        "a project cannot take the accepted grants out of force"
    );
    workspace.run(&["revoke", "settings"]);
    assert_eq!(
        greet().stdout.trim(),
        "nothing",
        "the operator's change applies to the copy"
    );
    let unchanged = std::fs::read_to_string(workspace.path().join("project.toml")).unwrap();
    assert_eq!(unchanged, proposed("changed"));
    let elsewhere = Workspace::new().run(&["trust"]);
    assert_eq!(elsewhere.code, Some(2), "{elsewhere}");
}

#[test]
fn accepting_a_project_without_grants_ends_the_accepted_ones() {
    let grants =
        "version = 1\n[[grant]]\nplugin = \"settings\"\nany-version = true\nconfig = { greeting = \"hello\" }\n";
    let workspace = Workspace::with("settings", SETTINGS)
        .file("toolwit.toml", "[grants]\nfile = \"project.toml\"\n")
        .file("project.toml", grants);
    accept(&workspace);
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "hello");
    std::fs::write(workspace.path().join("toolwit.toml"), "[run]\niterations = 50\n").unwrap();
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "hello");
    accept(&workspace);
    assert_eq!(workspace.run(&["call", "greet"]).stdout.trim(), "nothing");
}

#[test]
fn a_project_in_a_directory_with_a_long_path_is_usable() {
    let workspace = Workspace::with("settings", SETTINGS);
    let inside = workspace.path().join("проект".repeat(10)).join("сервер".repeat(10));
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(inside.join("toolwit.toml"), "[run]\niterations = 50\n").unwrap();
    let run = |arguments: &[&str]| {
        let output = workspace.command(arguments).current_dir(&inside).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let proposal: serde_json::Value = serde_json::from_str(&run(&["trust", "--json"])).unwrap();
    assert_eq!(proposal["accepted"], false);
    run(&["trust", "--accept", proposal["digest"].as_str().unwrap()]);
    let proposal: serde_json::Value = serde_json::from_str(&run(&["trust", "--json"])).unwrap();
    assert_eq!(proposal["accepted"], true);
}

/// Grows its memory by a number of pages of 64 KiB, and returns the earlier number or -1.
const GROWING: &str = r#"
(component
  (core module $m (memory 1) (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))
  (core instance $i (instantiate $m))
  (func (export "grow") (param "pages" s32) (result s32) (canon lift (core func $i "grow"))))
"#;

// attack: J8
#[test]
fn project_raises_limits_only_after_they_are_accepted() {
    const DEFAULT: u32 = 256;
    let limits = |memory: &str| format!("[limits]\nmemory = \"{memory}\"\nfuel = 1_000_000\n[run]\niterations = 50\n");
    let workspace = Workspace::with("growing", GROWING).file("toolwit.toml", limits("512MiB"));
    let grow = |mebibytes: u32| {
        let run = workspace.run(&["call", "grow", &format!("pages={}", (mebibytes - 8) * 16)]);
        (run.stdout.trim() == "1", run.stderr)
    };
    let (_, stderr) = grow(16);
    assert!(stderr.contains("`toolwit trust`"), "{stderr}");
    assert!(grow(DEFAULT).0 && !grow(512).0, "the default applies");
    let shown = workspace.run(&["trust"]);
    assert!(
        shown.stdout.contains("  limits.memory_bytes = \"512MiB\"\n")
            && shown.stdout.contains("  run.iterations = 50\n"),
        "{shown}"
    );
    assert!(!shown.stdout.contains("fuel"), "it is lower than the default: {shown}");

    let (_, document) = workspace.json(&["trust", "--json"]);
    let digest = document["digest"].as_str().unwrap();
    assert_eq!(document["limits"].as_array().unwrap().len(), 2, "{document}");
    assert_eq!(workspace.run(&["trust", "--accept", digest]).code, Some(0));
    assert_eq!(grow(512), (true, String::new()));

    // A change of the project, as by `git pull`, raises nothing beyond what was accepted.
    std::fs::write(workspace.path().join("toolwit.toml"), limits("1GiB")).unwrap();
    let (has_grown, stderr) = grow(768);
    assert!(
        !has_grown && stderr.contains("have changed since they were accepted"),
        "{stderr}"
    );
    assert!(grow(512).0, "what was accepted applies");
    assert_eq!(
        workspace.run(&["trust", "--accept", digest]).code,
        Some(2),
        "other limits were shown"
    );
    std::fs::write(workspace.path().join("toolwit.toml"), limits("64MiB")).unwrap();
    assert!(grow(64).0 && !grow(DEFAULT).0, "a lower limit applies at once");
    let option = workspace.run(&["call", "grow", "pages=4000", "--memory-bytes", "512MiB"]);
    assert_eq!(option.stdout.trim(), "1", "an option is the operator's: {option}");
}

// attack: J7
#[test]
fn concurrent_acceptances_leave_one_complete_proposal() {
    let workspace = Workspace::with("settings", SETTINGS)
        .file(
            "toolwit.toml",
            "[grants]\nfile = \"project.toml\"\n[limits]\nfuel = 30_000_000_000\n",
        )
        .file(
            "project.toml",
            "version = 1\n[[grant]]\nplugin = \"settings\"\nany-version = true\nconfig = { greeting = \"hello\" }\n",
        );
    let (_, document) = workspace.json(&["trust", "--json"]);
    let digest = document["digest"].as_str().unwrap();
    std::thread::scope(|threads| {
        for _ in 0..12 {
            let workspace = &workspace;
            threads.spawn(move || {
                assert_eq!(workspace.run(&["trust", "--accept", digest]).code, Some(0));
                let greeted = workspace.run(&["call", "greet"]);
                assert_eq!(
                    (greeted.stdout.trim(), greeted.stderr.as_str()),
                    ("hello", ""),
                    "{greeted}"
                );
            });
        }
    });
}
