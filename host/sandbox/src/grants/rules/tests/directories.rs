//! Rules for directories.

use super::*;

// attack: C6
#[test]
fn directory_is_granted_by_complete_names() {
    let effective = effective(
        r#"files = [{ host = "/srv/a", guest = "/data" }, { host = "/srv/b", guest = "/data/out", access = "read-write" }]"#,
    );
    let may = |path, access| allows(&effective, &AccessRequest::File(path, access));
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
fn read_only_directory_inside_a_writable_one_is_reached_through_it() {
    let rules = r#"files = [
        { host = "/srv", guest = "/data", access = "read-write" },
        { host = "/srv/in", guest = "/data/in" },
        { host = "/srv/in", guest = "/in" },
        { host = "/other", guest = "/data/other" },
    ]"#;
    let effective = effective(rules);
    let decide = |path, mode| effective.require(&AccessRequest::File(path, mode)).ok().flatten();
    assert_eq!(decide("/data/in/a", AccessMode::ReadWrite), Some(1));
    assert_eq!(
        effective.directory_mode("/data/in"),
        None,
        "it has no directory of its own"
    );
    for (guest, path, rule) in [("/in", "/in/a", 3), ("/data/other", "/data/other/a", 4)] {
        assert_eq!(decide(path, AccessMode::Read), Some(rule));
        assert_eq!(decide(path, AccessMode::ReadWrite), None);
        assert_eq!(effective.directory_mode(guest), Some(AccessMode::Read));
    }
}

// attack: L7
#[test]
fn directory_that_cannot_be_opened_allows_and_hides_nothing() {
    let mut effective = effective(
        r#"files = [{ host = "/srv", guest = "/data" }, { host = "/a", guest = "/data/in", access = "read-write" }, { host = "/b", guest = "/b" }]"#,
    );
    let rule = UnenforceableRule {
        position: None,
        reason: "it does not exist".to_owned(),
    };
    for guest in ["/data/in", "/b"] {
        effective
            .unenforceable_directories
            .insert(guest.to_owned(), rule.clone());
        assert_eq!(effective.directory_mode(guest), None);
    }
    let decide = |path, mode| effective.require(&AccessRequest::File(path, mode));
    assert_eq!(
        decide("/data/in/a", AccessMode::Read),
        Ok(Some(1)),
        "the outer directory"
    );
    assert!(decide("/data/in/a", AccessMode::ReadWrite).is_err());
    assert_eq!(decide("/b/a", AccessMode::Read), Err(Denial::Unenforceable(rule)));
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
            one_grant(&format!("files = [{{ host = '{host}', guest = \"/data\" }}]")).is_err(),
            "{host}"
        );
    }
    for guest in ["data", "", "/data/", "/data/../etc", "/./data", "//data"] {
        assert!(
            one_grant(&format!("files = [{{ host = \"/srv\", guest = \"{guest}\" }}]")).is_err(),
            "{guest}"
        );
    }
    let twice = r#"files = [{ host = "/a", guest = "/data" }, { host = "/b", guest = "/data" }]"#;
    assert!(one_grant(twice).is_err());
}
