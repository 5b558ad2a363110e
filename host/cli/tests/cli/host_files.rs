//! The files that the command reads as configuration, and the directories of plugins.

use crate::guests::FILES;
use crate::support::{Run, Workspace};

/// Returns a workspace in which the plugin `files` may write to the directory `work`.
fn workspace() -> Workspace {
    let workspace = Workspace::with("files", FILES)
        .variable("TOOLWIT_GRANTS", "own/grants.toml")
        .file("work/mcp.toml", "")
        .file("work/policy.toml", "")
        .file("other/mcp.toml", "");
    let directory = workspace.path().join("work").display().to_string();
    workspace.file(
        "own/grants.toml",
        format!(
            "version = 1\n[[grant]]\nplugin = \"files\"\nany-version = true\n\
             files = [{{ host = {directory:?}, guest = \"/work\", access = \"read-write\" }}]\n"
        ),
    )
}

fn assert_denied(run: &Run) {
    assert!(
        run.stderr.contains("the rule allows nothing") && run.stderr.contains("belongs to the host"),
        "{run}"
    );
}

// attack: L1
#[test]
fn a_directory_with_a_file_that_an_option_names_is_not_granted_to_a_plugin() {
    let workspace = workspace();
    let called = workspace.run(&["call", "look", "--mcp", "work/mcp.toml"]);
    assert_eq!(called.code, Some(0), "{called}");
    assert_denied(&called);
    let called = workspace.run(&["call", "look", "--mcp", "other/mcp.toml"]);
    assert_eq!((called.code, called.stderr.as_str()), (Some(0), ""), "{called}");
}

// attack: L1
#[test]
fn a_file_that_a_plugin_could_write_is_not_used_as_configuration() {
    let workspace = workspace();
    // Without an option, the directory is open to the plugin.
    let called = workspace.run(&["call", "look"]);
    assert_eq!((called.code, called.stderr.as_str()), (Some(0), ""), "{called}");
    let revoked = workspace.run(&["revoke", "files"]);
    assert_eq!(revoked.code, Some(0), "{revoked}");
    for arguments in [
        &["list", "--mcp", "work/mcp.toml"][..],
        &["call", "look", "--mcp", "work/mcp.toml"],
        &[
            "run",
            "Hi.",
            "--model",
            "scripted:absent.toml",
            "--policy",
            "work/policy.toml",
        ],
    ] {
        let refused = workspace.run(arguments);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused
                .stderr
                .contains("is not used as configuration: a plugin could write to its directory"),
            "{refused}"
        );
    }
    let listed = workspace.run(&["list", "--mcp", "other/mcp.toml"]);
    assert_eq!(listed.code, Some(0), "{listed}");
}

// attack: L1
#[test]
fn a_directory_with_the_policy_or_the_project_is_not_granted_for_writing() {
    let workspace = workspace()
        .variable("TOOLWIT_POLICY", "other/mcp.toml")
        .file("project/toolwit.toml", "")
        .file("plain/file", "");
    let grant = |option: &str, directory: &str| {
        let rule = format!("{}::/new", workspace.path().join(directory).display());
        workspace.run(&["grant", "files", option, &rule])
    };
    let refused = grant("--read", "other");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("belongs to the host"), "{refused}");
    assert_eq!(grant("--read", "plain").code, Some(0));
    let mut in_project = workspace.command(&["grant", "files", "--write", "..::/new", "--plugins", "../tools"]);
    let in_project: Run = in_project
        .current_dir(workspace.path().join("project"))
        .env("TOOLWIT_GRANTS", "../own/grants.toml")
        .env("TOOLWIT_POLICY", "../work/policy.toml")
        .output()
        .unwrap()
        .into();
    assert_eq!(in_project.code, Some(2), "{in_project}");
}

// attack: L17
#[cfg(unix)]
#[test]
fn a_link_that_a_plugin_may_have_left_is_not_granted_and_another_link_is_shown() {
    let workspace = workspace().file("private/file", "");
    std::os::unix::fs::symlink("../private", workspace.path().join("work/planted")).unwrap();
    std::os::unix::fs::symlink("private", workspace.path().join("link")).unwrap();
    assert_eq!(workspace.run(&["call", "look"]).code, Some(0));
    assert_eq!(workspace.run(&["revoke", "files"]).code, Some(0));
    let other = ["--grants", "own/other.toml"];
    let grant = |directory: &str| {
        let rule = format!("{}::/x", workspace.path().join(directory).display());
        workspace.run(&[&["grant", "files", "--read", &rule][..], &other].concat())
    };
    let refused = grant("work/planted");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("could write to under another grant"),
        "{refused}"
    );
    let granted = grant("link");
    assert_eq!(granted.code, Some(0), "{granted}");
    assert!(
        granted.stderr.contains("/link leads to ") && granted.stderr.contains("/private\n"),
        "{granted}"
    );
}
