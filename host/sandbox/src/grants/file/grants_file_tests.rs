//! Tests of the grants file on disk.

#![allow(clippy::unwrap_used)]

use std::fs;

use super::format::NewGrant;
use super::grants_file::{GrantsFile, GrantsFileErrorReason};
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
fn rules_are_the_same_after_writing_and_reading() {
    let directory = tempfile::tempdir().unwrap();
    let host = directory.path().to_str().unwrap();
    let rules = format!(
        r#"
http = [
    {{ host = "a.example" }},
    {{ host = "*", any-host = true, scheme = "http", ports = [80, 8080], methods = ["GET", "POST"], path = "/v1" }},
    {{ host = "[::1]", port = 8443, addresses = ["10.0.0.0/8", "::1"] }},
]
files = [
    {{ host = '{host}', guest = "/in" }},
    {{ host = '{host}', guest = "/out", access = "read-write", quota = "10MB" }},
    {{ host = '{host}', guest = "/tmp", access = "read-write" }},
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
    let file = GrantsFile::new(directory.path().join("own/grants.toml"));
    file.grant(&grant).unwrap();
    let read = file.read().unwrap();
    assert_eq!(read.grants[0].rules, grant.rules);
    assert_eq!(read.grants[0].version, GrantedVersion::Any);
}

#[test]
fn a_change_keeps_comments_and_other_grants() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grants.toml");
    let other = "version = 1 # mine\n\n# why\n[[grant]]\nplugin = \"other\"\nany-version = true\n";
    fs::write(&path, other).unwrap();
    let file = GrantsFile::new(&path);
    file.grant(&new_grant("tools = [\"a\"]")).unwrap();
    assert_eq!(file.read().unwrap().grants.len(), 2);
    assert_eq!(file.revoke("p").unwrap(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
    let again = file.revoke("p").unwrap_err();
    assert_eq!(
        again.reason.to_string(),
        "has no grant for `p`",
        "it is revoked already"
    );
    let log = fs::read_to_string(directory.path().join("grants.toml.log")).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[test]
fn a_directory_that_does_not_exist_is_not_granted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("grants.toml");
    let host = directory.path().join("missing");
    let rules = format!("files = [{{ host = '{}', guest = \"/in\" }}]", host.display());
    let error = GrantsFile::new(&path).grant(&new_grant(&rules)).unwrap_err();
    assert!(
        matches!(error.reason, GrantsFileErrorReason::NotGrantable(_)),
        "{error}"
    );
    assert!(!path.exists(), "nothing is written");
}
