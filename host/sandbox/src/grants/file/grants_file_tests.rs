//! Tests of the grants file on disk.

#![allow(clippy::unwrap_used)]

use std::fs;

use super::error::GrantsFileErrorReason;
use super::format::NewGrant;
use super::grants_file::GrantsFile;
use super::use_record::UseRecord;
use crate::grants::{GrantRules, GrantScope, GrantedVersion, Grants};

fn new_grant(rules: &str) -> NewGrant {
    let text = format!("version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\n{rules}");
    let mut grants = Grants::parse(text.as_bytes()).unwrap().grants;
    let rules: GrantRules = grants.remove(0).rules;
    NewGrant {
        plugin: "p".to_owned(),
        version: GrantedVersion::Any,
        scope: GrantScope::Always,
        rules,
    }
}

#[test]
#[cfg_attr(not(feature = "network"), ignore = "HTTP rules are refused without the feature")]
fn rules_are_the_same_after_writing_and_reading() {
    let directory = tempfile::tempdir().unwrap();
    let host_path = directory.path().to_str().unwrap();
    let rules = format!(
        r#"
http = [
    {{ host = "a.example" }},
    {{ host = "*", any-host = true, scheme = "http", ports = [80, 8080], methods = ["GET", "POST"], path = "/v1" }},
    {{ host = "[::1]", port = 8443, addresses = ["10.0.0.0/8", "::1"] }},
]
files = [
    {{ host = '{host_path}', guest = "/in" }},
    {{ host = '{host_path}', guest = "/out", access = "read-write", quota = "10MB" }},
    {{ host = '{host_path}', guest = "/tmp", access = "read-write" }},
]
env = [{{ name = "LANG" }}, {{ name = "TZ", value = "UTC \"x\"" }}]
secrets = [
    {{ name = "a", host = "a.example", header = "X-Key", port = 8443, path = "/v1" }},
    {{ name = "b", from = "conversation", host = "a.example", bearer = true, expose = true, variable = "B" }},
    {{ name = "c", from = "environment", host = "a.example", query = "key" }},
]
config = {{ "a.b" = "c", "d e" = "f\ng" }}
keyvalue = {{ quota = "1KiB" }}
tools = ["calc/add"]
context = ["tenant"]
blackboard = "read-write"
clock = {{ frozen = 1 }}
random = "real"
"#
    );
    let grant = new_grant(&rules);
    let file = GrantsFile::new(directory.path().join("missing/grants.toml"));
    file.grant(&grant).unwrap();
    let grants_of_file = file.read().unwrap().grants;
    assert_eq!(grants_of_file[0].rules, grant.rules);
    assert_eq!(grants_of_file[0].version, GrantedVersion::Any);
}

#[test]
fn a_change_keeps_comments_and_other_grants() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grants.toml");
    let before = "version = 1 # mine\n\n# why\n[[grant]]\nplugin = \"other\"\nany-version = true\n";
    fs::write(&path, before).unwrap();
    let file = GrantsFile::new(&path);
    file.grant(&new_grant("tools = [\"a\"]")).unwrap();
    assert_eq!(file.read().unwrap().grants.len(), 2);
    assert_eq!(file.revoke("p").unwrap(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    let error = file.revoke("p").unwrap_err();
    assert_eq!(
        error.reason.to_string(),
        "has no grant for `p`",
        "the grant was revoked before"
    );
    let log = fs::read_to_string(directory.path().join("grants.toml.log")).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[test]
fn a_directory_that_does_not_exist_is_not_granted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grants.toml");
    let missing = directory.path().join("missing");
    let rules = format!("files = [{{ host = '{}', guest = \"/in\" }}]", missing.display());
    let error = GrantsFile::new(&path).grant(&new_grant(&rules)).unwrap_err();
    assert!(
        matches!(error.reason, GrantsFileErrorReason::NotGrantable(_)),
        "{error}"
    );
    assert!(!path.exists(), "nothing is written");
}

// attack: L11
#[cfg(unix)]
#[test]
fn a_change_that_fails_is_not_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let (path, log) = (
        directory.path().join("grants.toml"),
        directory.path().join("grants.toml.log"),
    );
    let file = GrantsFile::new(&path);
    file.grant(&new_grant("tools = [\"a\"]")).unwrap();
    let before = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    // The new content is written to a file of this name first.
    let obstacle = directory
        .path()
        .join(format!(".grants.toml.{}.new", std::process::id()));
    fs::create_dir(&obstacle).unwrap();
    file.grant(&new_grant("tools = [\"b\"]")).unwrap_err();
    assert_eq!((fs::read(&path).unwrap(), fs::read(&log).unwrap()), before);
    fs::remove_dir(&obstacle).unwrap();
    // A change that cannot be logged is undone.
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    file.grant(&new_grant("tools = [\"b\"]")).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before.0);
    fs::remove_file(&log).unwrap();
    assert!(file.grant(&new_grant("tools = [\"b\"]")).unwrap());
    assert!(fs::read_to_string(&log).unwrap().contains("tool b"));
}

#[cfg(unix)]
#[test]
fn a_replaced_directory_is_accepted_only_if_its_grant_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grants.toml");
    let granted_directory = directory.path().join("granted");
    fs::create_dir(&granted_directory).unwrap();
    let file = GrantsFile::new(&path);
    let grant = new_grant(&format!(
        "files = [{{ host = {granted_directory:?}, guest = \"/in\" }}]"
    ));
    file.grant(&grant).unwrap();
    // Records another directory at this path.
    let record = directory.path().join("grants.toml.directories");
    let earlier_record = format!("0:0 {}\n", granted_directory.display());
    fs::write(&record, &earlier_record).unwrap();
    // The new content is written to a file of this name first.
    let obstacle = directory
        .path()
        .join(format!(".grants.toml.{}.new", std::process::id()));
    fs::create_dir(&obstacle).unwrap();
    file.grant(&grant).unwrap_err();
    assert_eq!(
        fs::read_to_string(&record).unwrap(),
        earlier_record,
        "the grant was not written"
    );
    fs::remove_dir(&obstacle).unwrap();
    // The file would be invalid with the grant.
    let mut invalid_grant = grant.clone();
    invalid_grant.plugin = "not a name".to_owned();
    file.grant(&invalid_grant).unwrap_err();
    assert_eq!(
        fs::read_to_string(&record).unwrap(),
        earlier_record,
        "the grant is invalid"
    );
    assert!(file.grant(&grant).unwrap(), "the same grant accepts the directory");
    assert_eq!(fs::read_to_string(&record).unwrap(), "");
    assert!(!file.grant(&grant).unwrap(), "the file already has the grant");
}

// attack: L9
#[test]
fn a_use_is_recorded_once_and_not_in_a_damaged_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grants.toml");
    let [first, second] = ["1", "2"].map(|digit| digit.repeat(64));
    let add = |identity: &str| UseRecord::of(&path).add(identity);
    assert!(UseRecord::of(&path).would_add(&first).unwrap());
    assert!(add(&first).unwrap() && !add(&first).unwrap());
    assert!(!UseRecord::of(&path).would_add(&first).unwrap());
    let record = directory.path().join("grants.toml.used");
    let complete = fs::read_to_string(&record).unwrap();
    let shortened = complete[..40].to_owned();
    let zeros = format!("{complete}{}", "\0".repeat(65));
    for damaged in [shortened, zeros, format!("{complete}\n{second}\n")] {
        fs::write(&record, &damaged).unwrap();
        let error = add(&second).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{damaged:?}: {error}");
        assert!(UseRecord::of(&path).would_add(&second).is_err());
    }
    fs::write(&record, complete).unwrap();
    assert!(add(&second).unwrap());
}

#[test]
fn a_grant_without_rules_can_be_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let file = GrantsFile::new(directory.path().join("grants.toml"));
    fs::write(
        file.path(),
        "version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\n",
    )
    .unwrap();
    assert_eq!(file.revoke("p").unwrap(), 1);
    assert!(file.read().unwrap().grants.is_empty());
}
