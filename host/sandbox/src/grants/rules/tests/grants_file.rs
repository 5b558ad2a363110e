//! Tests of the grants file: its format, and the components to which its grants apply.

use proptest::prelude::*;

use super::*;

// attack: H6
#[test]
fn grant_applies_to_one_digest_unless_it_is_for_any_version() {
    let text =
        format!("version = 1\n[[grant]]\nplugin = \"p\"\ndigest = \"sha256:{DIGEST}\"\nhttp = [{{ host = \"x\" }}]");
    let grants = parse_grants(&text).unwrap();
    let rights = EffectiveRights::new(&declared_capabilities(), &grants, "p", DIGEST);
    assert!(may_request(&rights, "x"));
    let other_digest = DIGEST.replace('0', "1");
    let rights_of_other_version = EffectiveRights::new(&declared_capabilities(), &grants, "p", &other_digest);
    assert_eq!(rights_of_other_version.no_grant, Some(NoGrantReason::OtherDigest));
    assert!(!may_request(&rights_of_other_version, "x"));
    assert_eq!(stale_grants(&grants, "p", &other_digest).len(), 1);
    let rights_of_other_plugin = EffectiveRights::new(&declared_capabilities(), &grants, "q", DIGEST);
    assert_eq!(rights_of_other_plugin.no_grant, Some(NoGrantReason::NotNamed));
    assert!(
        parse_grants("version = 1\n[[grant]]\nplugin = \"p\"").is_err(),
        "a grant needs `digest` or `any-version`"
    );
}

// attack: D1
#[test]
fn file_that_is_not_plain_text_is_refused() {
    assert!(parse_grants("").is_err());
    assert!(parse_grants("\u{feff}version = 1").is_err());
    assert!(parse_grants("version = 1\0").is_err());
    assert!(Grants::parse(b"\xff\xfev\0e\0").is_err());
    assert!(Grants::parse(b"version = 1 # \xff").is_err());
    assert!(Grants::parse(&vec![b' '; 50 << 20]).is_err());
    assert!(parse_grants("version = 1\r\n").is_ok());
}

#[test]
fn rule_with_a_control_character_is_refused() {
    for rule in [
        "context = [\"tenant\\nx\"]",
        "tools = [\"a#b\\u001b[2K\"]",
        "config = { \"a\\nb\" = \"1\" }",
        "files = [{ host = \"/tmp\", guest = \"/a\\nb\" }]",
    ] {
        let error = parse_grant_with(rule).unwrap_err();
        assert!(error.to_string().contains("control character"), "{rule}: {error}");
        let printable_rule = rule.replace("\\n", "").replace("\\u001b", "");
        assert!(parse_grant_with(&printable_rule).is_ok(), "{rule}");
    }
}

// attack: D2
#[test]
fn unknown_key_or_value_is_an_error_with_its_position() {
    for (text, expected) in [
        (
            "version = 1\npermisions = 1",
            "line 2, column 1: unknown field `permisions`",
        ),
        ("version = 1\nversion = 1", "line 2, column 1: duplicate key"),
        ("version = 2", "line 1, column 11: version 2 is not supported"),
        (
            "version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\nhttp = true",
            "line 5, column 8: invalid type",
        ),
        (
            "version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\nhttp = [{ host = \"x\", prot = 1 }]",
            "line 5, column",
        ),
        ("version = 1\ngrant = null", "line 2, column"),
        ("version = \"1\"", "line 1, column 11: invalid type"),
        ("grant = []", "line 1, column 1: missing field `version`"),
    ] {
        let error = parse_grants(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

// attack: D3
#[test]
fn deep_nesting_is_refused() {
    assert!(parse_grants(&format!("version = 1\na = {}", "[".repeat(100_000))).is_err());
    assert!(parse_grants(&format!("version = 1\n{} = 1", "a.".repeat(100_000) + "a")).is_err());
    assert!(parse_grants("a: &a [x]\nb: [*a, *a]").is_err(), "YAML with aliases");
}

// attack: D4
#[test]
fn invalid_ports_and_quotas_are_refused() {
    for port in [
        "-1",
        "0",
        "65536",
        "1e309",
        "9999999999999999999",
        "0.5",
        "nan",
        "\"443\"",
    ] {
        assert!(
            parse_grant_with(&format!("http = [{{ host = \"x\", port = {port} }}]")).is_err(),
            "{port}"
        );
    }
    for quota in ["\"10 XB\"", "-1", "\"-1\"", "\"0.5MiB\"", "10000000", "\"1e309\""] {
        let lines = format!("files = [{{ host = \"/a\", guest = \"/a\", access = \"read-write\", quota = {quota} }}]");
        assert!(parse_grant_with(&lines).is_err(), "{quota}");
    }
    let rule = &rights_of(r#"files = [{ host = "/a", guest = "/a", access = "read-write", quota = "10MB" }]"#)
        .rules
        .files[0];
    assert_eq!(rule.quota_bytes, 10_000_000);
}

// attack: D6
#[test]
fn plugin_name_is_not_a_path() {
    for name in ["../etc", "a/b", "", ".", "..", ".a", "a b", "a\\b", "\u{430}"] {
        let text = format!("version = 1\n[[grant]]\nplugin = '{name}'\nany-version = true");
        assert!(parse_grants(&text).is_err(), "{name}");
    }
}

#[test]
fn secret_is_sent_to_one_https_host_and_path() {
    for lines in [
        r#"secrets = [{ name = "k" }]"#,
        r#"secrets = [{ name = "k", host = "*.example.com", bearer = true }]"#,
        r#"secrets = [{ name = "k", host = "example.com" }]"#,
        r#"secrets = [{ name = "k", host = "example.com", bearer = true, basic = true }]"#,
        r#"secrets = [{ name = "k", host = "example.com", header = "Host" }]"#,
        r#"secrets = [{ name = "k", host = "example.com", header = "a: b\r\nc" }]"#,
        r#"secrets = [{ name = "k", expose = true }]"#,
        r#"secrets = [{ name = "k", variable = "K" }]"#,
        r#"secrets = [{ name = "../k", host = "example.com", bearer = true }]"#,
        r#"secrets = [{ name = "k", host = "example.com", query = "a&b" }]"#,
    ] {
        assert!(parse_grant_with(lines).is_err(), "{lines}");
    }
    let rule = &rights_of(r#"secrets = [{ name = "k", host = "example.com", path = "/v1", header = "X-Key" }]"#)
        .rules
        .secrets[0];
    let target = rule.target.as_ref().unwrap();
    assert_eq!(target.placement, SecretPlacement::Header("x-key".to_owned()));
    let is_sent_to = |url: &str| target.matches(&RequestTarget::parse(url).unwrap());
    assert!(is_sent_to("https://example.com/v1/a") && is_sent_to("POST https://EXAMPLE.com:443/v1"));
    for other_url in [
        "http://example.com/v1",
        "https://example.com:8443/v1",
        "https://a.example.com/v1",
        "https://example.com/v1/../v2",
        "https://example.com/v10",
    ] {
        assert!(!is_sent_to(other_url), "{other_url}");
    }
}

#[test]
fn a_header_name_is_checked_without_regard_to_case() {
    let rule = |header: &str| SecretRule::sent_to("k", "example.com", SecretPlacement::Header(header.to_owned()));
    for reserved in ["Host", "Transfer-Encoding", "Proxy-Authorization"] {
        assert!(rule(reserved).is_err(), "{reserved}");
    }
    let target = rule("X-Key").unwrap().target.unwrap();
    assert_eq!(target.placement, SecretPlacement::Header("x-key".to_owned()));
}

proptest! {
    #[test]
    fn grants_parser_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Grants::parse(&bytes);
    }
}

#[test]
fn control_characters_of_a_rule_are_escaped_in_its_error() {
    for rule in [
        r#"files = [{ host = "a\u001b[2K" }]"#,
        r#"files = [{ host = "/a", guest = "/\u001b" }, { host = "/b", guest = "/\u001b" }]"#,
        r#"http = [{ host = "\u001b\u00e9" }]"#,
        r#"http = [{ host = "[\u001b]" }]"#,
        r#"http = [{ host = "a.example", addresses = ["\u001b"] }]"#,
    ] {
        let text = format!("version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\n{rule}\n");
        let error = Grants::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}
