use super::*;

#[test]
fn urls_with_plain_http_to_other_machines_or_with_a_password_are_refused() {
    for url in [
        "https://example.com/mcp",
        "http://127.0.0.1:8080",
        "http://localhost/mcp",
        "http://[::1]:1/",
    ] {
        assert!(ServerConfig::http("a", url).is_ok(), "{url}");
    }
    for url in [
        "http://example.com/mcp",
        "http://169.254.169.254/",
        "http://127.0.0.1.example.com/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "https://user:password@example.com/",
        "",
    ] {
        assert!(ServerConfig::http("a", url).is_err(), "{url}");
    }
}

#[test]
fn names_that_are_empty_too_long_or_have_separators_are_refused() {
    assert!(ServerConfig::process("git-hub_1.0", "npx").is_ok());
    for name in ["", "a/b", "a#b", "a b", "a\u{1b}", &"x".repeat(65)] {
        assert!(ServerConfig::process(name, "npx").is_err(), "{name:?}");
    }
}
