//! Secrets that plugins use and do not see.

use crate::grant::workspace;
use crate::support::Workspace;

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

#[test]
fn secret_that_is_set_twice_is_replaced_and_one_that_is_written_twice_is_refused() {
    let workspace = Workspace::new();
    let set = |value: &str| workspace.run_with_input(&["secret", "set", "key", "--secrets", "secrets.toml"], value);
    assert_eq!(set("correct horse battery").stderr, "key: set\n");
    assert_eq!(set("staple the horse again").stderr, "key: replaced\n");
    let list = || workspace.run(&["secret", "list", "--secrets", "secrets.toml"]);
    assert_eq!(list().stdout, "key\n");

    let file = workspace.path().join("secrets.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("staple the horse again") && !text.contains("battery"));
    std::fs::write(&file, format!("{text}key = \"another horse\"\n")).unwrap();
    let twice = list();
    assert_eq!(twice.code, Some(2), "{twice}");
    assert!(
        twice.stderr.contains("is invalid at line 2") && !twice.stderr.contains("horse"),
        "{twice}"
    );
    assert!(twice.stderr.lines().count() <= 2, "{twice}");
}

// attack: J7
#[test]
fn concurrent_changes_of_secrets_are_not_lost() {
    const CHANGES: usize = 12;
    let workspace = Workspace::new();
    std::thread::scope(|threads| {
        for number in 0..CHANGES {
            let (name, workspace) = (format!("key{number}"), &workspace);
            threads.spawn(move || {
                let set = workspace.run_with_input(&["secret", "set", &name], "correct horse battery");
                assert_eq!(set.code, Some(0), "{set}");
                let listed = workspace.run(&["secret", "list"]);
                assert_eq!(listed.code, Some(0), "a reader sees a complete file: {listed}");
            });
        }
    });
    let (_, listed) = workspace.json(&["secret", "list", "--json"]);
    assert_eq!(listed["secrets"].as_array().unwrap().len(), CHANGES, "{listed}");
    std::thread::scope(|threads| {
        for number in 0..CHANGES {
            let (name, workspace) = (format!("key{number}"), &workspace);
            threads.spawn(move || assert_eq!(workspace.run(&["secret", "remove", &name]).code, Some(0)));
        }
    });
    assert_eq!(workspace.run(&["secret", "list"]).stdout, "");
}

#[test]
fn secret_that_is_not_set_is_not_granted() {
    let workspace = workspace();
    let secrets = ["--secrets", "own/secrets.toml"];
    let grant = [
        "grant",
        "settings",
        "--secret",
        "key",
        "--to",
        "a.example",
        "--as",
        "bearer",
    ];
    let grant: Vec<_> = grant.iter().chain(&secrets).copied().collect();
    let refused = workspace.run(&grant);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("hint: `toolwit secret set key`"), "{refused}");
    let set = || {
        workspace.run_with_input(
            &["secret", "set", "key", "--secrets", "own/secrets.toml"],
            "correct horse\n",
        )
    };
    assert_eq!(set().stderr, "key: set\n");
    assert_eq!(set().stderr, "key: replaced\n");
    assert_eq!(workspace.run(&grant).code, Some(0));
    let doctor = workspace.run(&["doctor", "--secrets", "own/secrets.toml"]);
    assert!(!doctor.stdout.contains("does not exist"), "{doctor}");
    let doctor = workspace.run(&["doctor", "--secrets", "own/other.toml"]);
    assert!(doctor.stdout.contains("secret `key`, which does not exist"), "{doctor}");
}

#[cfg(unix)]
#[test]
fn doctor_suggests_the_repair_that_an_unreadable_secret_store_needs() {
    use std::os::unix::fs::PermissionsExt;

    let workspace = Workspace::new().file("secrets.toml", "key = 1\n");
    std::fs::create_dir_all(workspace.path().join("tools")).unwrap();
    let file = workspace.path().join("secrets.toml");
    let doctor = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        workspace.run(&["doctor", "--secrets", "secrets.toml"])
    };
    let (invalid, open) = (doctor(0o600), doctor(0o644));
    assert!(
        invalid.stdout.contains("hint: fix the file, or name another file"),
        "{invalid}"
    );
    assert!(!invalid.stdout.contains("chmod"), "{invalid}");
    assert!(open.stdout.contains("hint: run `chmod 600 "), "{open}");
}
