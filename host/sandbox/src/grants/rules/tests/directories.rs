//! Tests of rules for directories.

use super::*;

// attack: C6
#[test]
fn directory_rule_compares_complete_names() {
    let rights = rights_of(
        r#"files = [{ host = "/srv/a", guest = "/data" }, { host = "/srv/b", guest = "/data/out", access = "read-write" }]"#,
    );
    let may = |path, mode| allows(&rights, &AccessRequest::File(path, mode));
    for inside in ["/data", "/data/", "/data/a/b", "/data/./a", "//data//a"] {
        assert!(may(inside, AccessMode::Read), "{inside}");
    }
    for outside in [
        "/data-secret",
        "/DATA",
        "/",
        "",
        "data",
        "/data/../etc/passwd",
        "/dat",
        "/etc",
    ] {
        assert!(!may(outside, AccessMode::Read), "{outside}");
    }
    assert!(!may("/data/a", AccessMode::ReadWrite));
    assert!(
        may("/data/out/a", AccessMode::ReadWrite),
        "the innermost directory decides"
    );
}

// attack: L8
#[test]
fn read_only_directory_is_reached_through_the_writable_directory_around_it() {
    let rules = r#"files = [
        { host = "/srv", guest = "/data", access = "read-write" },
        { host = "/srv/in", guest = "/data/in" },
        { host = "/srv/in", guest = "/in" },
        { host = "/other", guest = "/data/other" },
    ]"#;
    let rights = rights_of(rules);
    let allowing_rule = |path, mode| rights.require(&AccessRequest::File(path, mode)).ok().flatten();
    assert_eq!(allowing_rule("/data/in/a", AccessMode::ReadWrite), Some(1));
    assert_eq!(
        rights.directory_mode("/data/in"),
        None,
        "the guest reaches the files of `/data/in` through `/data`"
    );
    for (guest, path, rule) in [("/in", "/in/a", 3), ("/data/other", "/data/other/a", 4)] {
        assert_eq!(allowing_rule(path, AccessMode::Read), Some(rule));
        assert_eq!(allowing_rule(path, AccessMode::ReadWrite), None);
        assert_eq!(rights.directory_mode(guest), Some(AccessMode::Read));
    }
}

// attack: L7
#[test]
fn directory_that_cannot_be_opened_allows_and_hides_nothing() {
    let rules = r#"files = [
        { host = "/srv", guest = "/data" },
        { host = "/a", guest = "/data/in", access = "read-write" },
        { host = "/b", guest = "/b" },
    ]"#;
    let mut rights = rights_of(rules);
    let rule = UnenforceableRule {
        position: None,
        reason: "it does not exist".to_owned(),
    };
    for guest in ["/data/in", "/b"] {
        rights.unenforceable_directories.insert(guest.to_owned(), rule.clone());
        assert_eq!(rights.directory_mode(guest), None);
    }
    let require = |path, mode| rights.require(&AccessRequest::File(path, mode));
    assert_eq!(
        require("/data/in/a", AccessMode::Read),
        Ok(Some(1)),
        "the rule of the outer directory applies"
    );
    assert!(require("/data/in/a", AccessMode::ReadWrite).is_err());
    assert_eq!(require("/b/a", AccessMode::Read), Err(Denial::Unenforceable(rule)));
}

// attack: C7, attack: D5
#[test]
fn directory_needs_an_absolute_path() {
    for host in [
        "data",
        "./data",
        "/srv/../etc",
        "~/data",
        "${HOME}/data",
        "",
        "/",
        "%APPDATA%",
    ] {
        assert!(
            parse_grant_with(&format!("files = [{{ host = '{host}', guest = \"/data\" }}]")).is_err(),
            "{host}"
        );
    }
    for guest in ["data", "", "/data/", "/data/../etc", "/./data", "//data"] {
        assert!(
            parse_grant_with(&format!("files = [{{ host = \"/srv\", guest = \"{guest}\" }}]")).is_err(),
            "{guest}"
        );
    }
    let duplicate_guest_path = r#"files = [{ host = "/a", guest = "/data" }, { host = "/b", guest = "/data" }]"#;
    assert!(parse_grant_with(duplicate_guest_path).is_err());
}
