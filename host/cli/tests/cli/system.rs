//! Settings of the system that leave the host with less memory.
#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

use crate::guests::FILES;
use crate::support::{Run, TOOLWIT, Workspace};

/// Runs the command with a limit of address space, in KiB.
fn run_with_address_space(workspace: &Workspace, kib: u64, arguments: &[&str]) -> Run {
    let template = workspace.command(arguments);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("ulimit -v {kib} && exec \"$0\" \"$@\""), TOOLWIT])
        .args(template.get_args())
        .current_dir(workspace.path())
        .env_clear()
        .envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null());
    command.output().unwrap().into()
}

#[test]
fn a_limit_of_address_space_makes_plugins_slower_or_is_an_error_of_the_host() {
    let workspace = Workspace::with("files", FILES);
    for kib in [8_000_000, 4_000_000, 3_145_728, 2_000_000] {
        let called = run_with_address_space(&workspace, kib, &["call", "look"]);
        assert_eq!(
            (called.code, called.stdout.trim()),
            (Some(0), "7"),
            "{kib} KiB: {called}"
        );
    }
    for kib in [1_000_000, 500_000, 300_000] {
        let called = run_with_address_space(&workspace, kib, &["call", "look"]);
        let names_the_setting = called.stderr.contains("ulimit -v") && !called.stderr.contains("trapped");
        assert!(called.code == Some(0) || names_the_setting, "{kib} KiB: {called}");
    }
    let (_, listed) = workspace.json(&["list", "--by", "health", "--json"]);
    assert!(!listed.to_string().contains("broken"), "{listed}");
    let doctor = run_with_address_space(&workspace, 3_145_728, &["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("the address space of the host is limited to 3.0 GiB"),
        "{doctor}"
    );
}
