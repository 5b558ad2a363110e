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
