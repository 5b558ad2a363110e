//! A directory of a stranger: no program in it is started.

use crate::guests::PLAIN;
use crate::support::{Run, Workspace};

/// A project of a stranger that starts its own program in every way that it can: as the toolchain of the directory, as a program in
/// the current directory, as the build of a plugin, and as the repository of the demo.
#[cfg(unix)]
fn hostile_project() -> Workspace {
    let started = "echo \"$0\" >> \"$HOME/../started\"; echo 'cargo 0.0.0 (evil)'";
    let rustup = "directory=$PWD\nwhile [ -n \"$directory\" ]; do\n\
        if [ -f \"$directory/rust-toolchain.toml\" ]; then exec \"$directory/evil\" \"$@\"; fi\n\
        directory=${directory%/*}\ndone\n\
        if [ -n \"$RUSTUP_TOOLCHAIN\" ]; then exec \"$RUSTUP_TOOLCHAIN\" \"$@\"; fi\n\
        echo 'cargo 1.95.0 (default)'";
    let mut workspace = Workspace::with("plain", PLAIN)
        .program("cargo", rustup)
        .program("rustc", rustup);
    for name in ["cargo", "rustc", "rustup", "id", "sudo", "env", "dpkg-query", "evil"] {
        workspace = workspace.program(&format!("../{name}"), started);
        // A build runs in the directory of its source.
        workspace = workspace.program(&format!("../rust/{name}"), started);
    }
    workspace
        .file("rust-toolchain.toml", "[toolchain]\npath = \"evil\"\n")
        .file(
            "toolwit.toml",
            "[build]\ncommand = [\"./evil\"]\noutput = \"plain.wasm\"\n",
        )
        .file("Cargo.toml", "[workspace]\nmembers = [\"plugins/customers\"]\n")
        .file(
            "plugins/customers/Cargo.toml",
            "[package]\nname = \"customers\"\nversion = \"1.0.0\"\n",
        )
        .file(
            "plugins/customers/toolwit.toml",
            "[build]\ncommand = [\"../../evil\"]\noutput = \"a.wasm\"\n",
        )
        .file(".home/.keep", "")
}

// attack: J1
#[cfg(unix)]
#[test]
fn no_command_but_build_starts_a_program_of_the_current_directory() {
    // The demo builds its source in the user's data directory, which is not in the project.
    let data = tempfile::tempdir().unwrap();
    let workspace = hostile_project().variable("XDG_DATA_HOME", data.path().display().to_string());
    let started = workspace.path().join("started");
    for command in [
        &["doctor"][..],
        &["demo"],
        &["list"],
        &["call", "add", "a=1", "b=2"],
        &["inspect", "tools/plain.wasm"],
        &["lint", "tools/plain.wasm"],
        &["pack", "tools/plain.wasm"],
        &["add", "tools/plain.wasm", "--plugins", "other"],
        &["trust"],
        &["cache"],
        &["refresh"],
    ] {
        let run = workspace.run(command);
        assert!(!started.exists(), "{command:?}: {run}");
    }
    let evil = workspace.path().join("evil").display().to_string();
    let workspace = workspace.variable("RUSTUP_TOOLCHAIN", evil);
    let doctor = workspace.run(&["doctor"]);
    let default = "Rust plugins can be built: cargo 1.95.0 (default)";
    assert!(doctor.stdout.contains(default) && !started.exists(), "{doctor}");
    let build = workspace.run(&["build", "."]);
    assert!(started.exists(), "the build command is the project's: {build}");
    assert!(build.stderr.contains("running `./evil`"), "it is announced: {build}");
}

// attack: J1
#[cfg(unix)]
#[test]
fn a_program_in_the_current_directory_is_not_on_path() {
    let workspace = hostile_project().variable("PATH", ".:");
    let doctor = workspace.run(&["doctor"]);
    assert!(doctor.stdout.contains("cargo is not on PATH"), "{doctor}");
    let workspace = workspace.file("rust/Cargo.toml", "[package]\nname = \"a\"\nversion = \"1.0.0\"\n");
    let build = workspace.run(&["build", "rust"]);
    assert_eq!(build.code, Some(3), "{build}");
    assert!(!workspace.path().join("started").exists(), "{build}");
}

#[cfg(unix)]
#[test]
fn doctor_reports_why_a_toolchain_fails() {
    let workspace = Workspace::new().program("cargo", "echo 'error: no default toolchain' >&2; exit 1");
    let doctor: Run = workspace.run(&["doctor"]);
    let expected = "cargo on PATH does not work (error: no default toolchain), so that Rust plugins cannot be built";
    assert!(doctor.stdout.contains(expected), "{doctor}");
    assert!(doctor.stdout.contains("`rustup default stable`"), "{doctor}");
}

// attack: J11
#[cfg(unix)]
#[test]
fn a_pipe_is_refused_as_a_scenario_and_as_a_configuration() {
    let workspace = Workspace::with("plain", PLAIN);
    let pipe = workspace.path().join("pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for arguments in [
        &["run", "hi", "--model", "scripted:pipe"][..],
        &["serve", "--http", "127.0.0.1:0", "--config", "pipe"],
    ] {
        let refused = workspace.run(arguments);
        assert_ne!(refused.code, Some(0), "{refused}");
        assert!(refused.stderr.contains("is not a regular file"), "{refused}");
    }
}
