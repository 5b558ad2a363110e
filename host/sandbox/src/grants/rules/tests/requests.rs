//! Tests of rules for HTTP requests.

use proptest::prelude::*;

use super::*;

// attack: C10
#[test]
fn only_the_granted_host_is_allowed() {
    let rights = rights_of(r#"http = [{ host = "API.example.com." }]"#);
    for form in [
        "api.example.com",
        "API.EXAMPLE.COM",
        "api.example.com.",
        "api.example.com:443",
    ] {
        assert!(may_request(&rights, form), "{form}");
    }
    for other_host in [
        "evil.com",
        "api.example.com.evil.com",
        "xapi.example.com",
        "api.example.com:8443",
        "api.example.com:80",
        "api.example.com..",
        ".api.example.com",
        "%61pi.example.com",
        "\u{430}pi.example.com",
        "\u{ff41}pi.example.com",
        "api\u{3002}example.com",
        "api.example.com:",
        "api.example.com:0",
        "api.example.com:+443",
        "api.example.com:443:443",
        "api.example.com:65979",
        "",
    ] {
        assert!(!may_request(&rights, other_host), "{other_host}");
    }
}

#[test]
fn non_ascii_host_name_is_granted_in_its_ascii_form() {
    let rights = rights_of("http = [{ host = \"b\u{fc}cher.example\" }]");
    assert!(may_request(&rights, "xn--bcher-kva.example"));
    assert!(!may_request(&rights, "bucher.example"));
}

// attack: C11
#[test]
fn an_authority_with_more_than_a_host_is_refused() {
    let rights = rights_of(r#"http = [{ host = "api.example.com" }]"#);
    for authority in [
        "api.example.com@evil.com",
        "user:password@api.example.com",
        "evil.com#@api.example.com",
        "api.example.com\\@evil.com",
        "api.example.com ",
        " api.example.com",
        "api.example.com\t",
        "api.example.com\0",
        "api.example.com\r\nHost: evil.com",
        "evil.com/api.example.com",
        "evil.com?api.example.com",
    ] {
        assert!(!may_request(&rights, authority), "{authority:?}");
    }
    for url in [
        "https://api.example.com@evil.com/",
        "https://evil.com\\@api.example.com/",
        "https://evil.com#@api.example.com",
    ] {
        let is_allowed = RequestTarget::parse(url).is_ok_and(|target| allows(&rights, &AccessRequest::Http(&target)));
        assert!(!is_allowed, "{url}");
    }
}

// attack: C12
#[test]
fn address_is_denied_unless_granted_as_an_address() {
    let any_name = rights_of("http = [{ host = \"*\", any-host = true }]");
    let unusual_forms = [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "127.0.0.1.",
        "1.2.3.4.5",
        "[fe80::1%25lo]",
        "[::1",
    ];
    for authority in unusual_forms {
        assert!(
            RequestTarget::new("GET", "https", authority, "/").is_err(),
            "{authority}"
        );
    }
    for authority in [
        "127.0.0.1",
        "8.8.8.8",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
    ] {
        assert!(!may_request(&any_name, authority), "{authority}");
    }
    let loopback_rights = rights_of(r#"http = [{ host = "127.0.0.1" }]"#);
    for form in ["127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"] {
        assert!(may_request(&loopback_rights, form), "{form}");
    }
    assert!(!may_request(&loopback_rights, "[::1]") && !may_request(&loopback_rights, "localhost"));
    assert!(loopback_rights.rules.http[0].allows_address("127.0.0.1".parse().unwrap()));
    assert!(!loopback_rights.rules.http[0].allows_address("127.0.0.2".parse().unwrap()));
}

// attack: C13
#[test]
fn name_may_resolve_to_public_or_granted_addresses() {
    let public_only = rights_of(r#"http = [{ host = "api.example.com" }]"#);
    let with_private_range = rights_of(r#"http = [{ host = "api.example.com", addresses = ["10.1.0.0/16"] }]"#);
    let check_address =
        |rights: &EffectiveRights, address: &str| decide_address(&rights.rules.http[0], address.parse().unwrap());
    assert_eq!(check_address(&public_only, "93.184.216.34"), Ok(()));
    for address in [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.100.100.200",
        "::1",
        "fd00:ec2::254",
        "::ffff:10.1.2.3",
    ] {
        assert!(check_address(&public_only, address).is_err(), "{address}");
    }
    assert_eq!(check_address(&with_private_range, "10.1.2.3"), Ok(()));
    assert_eq!(check_address(&with_private_range, "::ffff:10.1.2.3"), Ok(()));
    let denial = check_address(&with_private_range, "10.2.0.1").unwrap_err();
    assert_eq!(
        denial.to_string(),
        "the host has the private address 10.2.0.1, which is not granted"
    );
}

// attack: C16
#[test]
fn other_schemes_and_tunnelling_methods_are_refused() {
    for scheme in ["ftp", "file", "unix", "ws", "wss", "", "HTTP ", "gopher"] {
        assert!(
            RequestTarget::new("GET", scheme, "example.com", "/").is_err(),
            "{scheme}"
        );
    }
    for method in ["CONNECT", "connect", "TRACE", "", "GET /", "G\r\nET", "PROPFIND\0"] {
        assert!(
            RequestTarget::new(method, "https", "example.com", "/").is_err(),
            "{method:?}"
        );
    }
    let rights = rights_of(r#"http = [{ host = "example.com", methods = ["GET", "POST"] }]"#);
    for (method, is_allowed) in [
        ("GET", true),
        ("POST", true),
        ("get", false),
        ("PUT", false),
        ("HEAD", false),
    ] {
        let target = RequestTarget::new(method, "https", "example.com", "/").unwrap();
        assert_eq!(allows(&rights, &AccessRequest::Http(&target)), is_allowed, "{method}");
    }
    assert!(parse_grant_with(r#"http = [{ host = "example.com", methods = ["CONNECT"] }]"#).is_err());
    assert!(parse_grant_with(r#"http = [{ host = "example.com", scheme = "ftp" }]"#).is_err());
}

// attack: C17
#[test]
fn star_matches_at_least_one_label_before_a_name_of_two_labels() {
    let subdomains = rights_of(r#"http = [{ host = "*.example.com" }]"#);
    for inside in ["a.example.com", "a.b.example.com", "A.EXAMPLE.COM."] {
        assert!(may_request(&subdomains, inside), "{inside}");
    }
    for outside in [
        "example.com",
        "evil-example.com",
        "evilexample.com",
        ".example.com",
        "a.example.com.evil.com",
    ] {
        assert!(!may_request(&subdomains, outside), "{outside}");
    }
    for refused in [
        "*",
        "*.com",
        "*.",
        "*.*.com",
        "a.*.com",
        "api.*",
        "*example.com",
        "**.example.com",
        "*.10.0.0.1",
        "",
    ] {
        assert!(
            parse_grant_with(&format!("http = [{{ host = \"{refused}\" }}]")).is_err(),
            "{refused}"
        );
    }
    assert!(parse_grant_with(r#"http = [{ host = "a.com", any-host = true }]"#).is_err());
}

// attack: K7
#[test]
fn path_prefix_matches_complete_segments() {
    let rights = rights_of(r#"http = [{ host = "example.com", path = "/v1/a" }]"#);
    let may = |path: &str| {
        let target = RequestTarget::new("GET", "https", "example.com", path);
        target.is_ok_and(|target| allows(&rights, &AccessRequest::Http(&target)))
    };
    for inside in ["/v1/a", "/v1/a/", "/v1/a/b?c=/../d", "/v1/a?x"] {
        assert!(may(inside), "{inside}");
    }
    for outside in [
        "/",
        "/v1/ab",
        "/v1/a/../b",
        "/v1/a/%2e%2E/b",
        "/v1/a/.%2e/b",
        "/v1/a%2f..%2fb",
        "/v1/a/%252e%252e/b",
        "/v1/a//b",
        "/v1/a/..;/b",
        "//v1/a",
        "/V1/a",
        "/v1/a\\..\\b",
        "/v1/a b",
        "/v1/a\r\nX: y",
        "/v1/a/%u002e%u002e/b",
        "/v1/a/%c0%ae%c0%ae/b",
        "/v1/a/.%09./b",
        "/v1/a/%ef%bc%8e%ef%bc%8e/b",
    ] {
        assert!(!may(outside), "{outside:?}");
    }
}

#[test]
fn a_denial_names_the_nearest_rule() {
    let rights = rights_of(
        r#"http = [{ host = "other.example" }, { host = "x", ports = [443, 444] }, { host = "x", port = 443 }]"#,
    );
    let target = RequestTarget::parse("GET https://x:8443/a").unwrap();
    let Decision::Denied(denial) = decide(&rights, &AccessRequest::Http(&target)) else {
        panic!("the request is allowed");
    };
    assert_eq!(denial.to_string(), "rule 2 allows the ports 443, 444 only");
    let target = RequestTarget::parse("https://x/a").unwrap();
    assert_eq!(
        decide(&rights, &AccessRequest::Http(&target)),
        Decision::Allowed { rule: Some(2) }
    );
}

proptest! {
    #[test]
    fn only_forms_of_the_granted_host_are_allowed(authority in "[ -~\u{80}-\u{ff}]{0,40}") {
        let rights = rights_of(r#"http = [{ host = "api.example.com" }]"#);
        if may_request(&rights, &authority) {
            let host = authority.strip_suffix(":443").unwrap_or(&authority);
            let host = host.strip_suffix('.').unwrap_or(host);
            prop_assert!(host.eq_ignore_ascii_case("api.example.com"), "{authority}");
        }
    }

    /// A granted name with a prefix or suffix is refused, unless it still denotes the same host.
    #[test]
    fn granted_name_with_prefix_or_suffix_is_refused(before in "[!-~]{0,6}", after in "[!-~]{0,6}") {
        let rights = rights_of(r#"http = [{ host = "api.example.com" }]"#);
        let authority = format!("{before}api.example.com{after}");
        if may_request(&rights, &authority) {
            prop_assert!(before.is_empty() && matches!(after.as_str(), "" | "." | ":443" | ".:443"), "{authority}");
        }
    }

    /// An allowed path stays below its granted prefix after dot segments and escapes are resolved.
    #[test]
    fn allowed_path_stays_below_its_prefix(path in "/v1(/|%2e|%2E|\\.|%2f|%5c|\\\\|a|;|%25|\\?){0,10}") {
        let rights = rights_of(r#"http = [{ host = "x", path = "/v1" }]"#);
        if let Ok(target) = RequestTarget::new("GET", "https", "x", &path)
            && allows(&rights, &AccessRequest::Http(&target))
        {
            let resolved = target.path.split('?').next().unwrap().replace("%2e", ".").replace("%2E", ".");
            prop_assert!(!resolved.split('/').any(|segment| segment == ".." || segment == "."), "{path}");
            prop_assert!(resolved == "/v1" || resolved.starts_with("/v1/"), "{path}");
        }
    }
}
