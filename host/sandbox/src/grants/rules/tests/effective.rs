//! The effective rights: declared ∩ granted.

use super::*;

// attack: C8
#[test]
fn variable_is_granted_by_its_name() {
    let effective = effective(r#"env = [{ name = "LANG" }, { name = "TZ", value = "UTC" }]"#);
    let may = |name| allows(&effective, &AccessRequest::Variable(name));
    assert!(may("LANG") && may("TZ"));
    for other in ["PATH", "HOME", "lang", "LANG2", ""] {
        assert!(!may(other), "{other}");
    }
}

#[test]
fn granted_rule_without_declared_capability_has_no_effect() {
    let lines = r#"
http = [{ host = "example.com" }]
files = [{ host = "/srv", guest = "/data" }]
env = [{ name = "LANG" }]
config = { a = "b" }
keyvalue = { quota = "1MiB" }
tools = ["calc/add"]
secrets = [{ name = "key", host = "example.com", bearer = true }]"#;
    let granted = one_grant(lines).unwrap();
    let declared = DeclaredCapabilities::from_imports(["wasi:clocks/wall-clock@0.2.0"]);
    let nothing = EffectiveRights::new(&declared, &granted, "p", DIGEST);
    assert_eq!(
        nothing,
        EffectiveRights {
            declared,
            ..EffectiveRights::default()
        }
    );
    let all = effective(lines);
    assert!(
        all.rules.http.len() == 1
            && all.rules.files.len() == 1
            && all.rules.env.len() == 1
            && all.rules.secrets.len() == 1
    );
    assert!(all.rules.config.len() == 1 && all.rules.keyvalue.is_some() && all.rules.tools.len() == 1);
}

#[test]
fn instance_is_kept_only_if_no_right_was_revoked() {
    let a = effective(r#"http = [{ host = "a" }]"#);
    let both = effective(r#"http = [{ host = "a" }, { host = "b" }]"#);
    assert!(both.can_keep_instance_of(&a), "more than before");
    assert!(!a.can_keep_instance_of(&both), "less than before");
    let env = effective(r#"env = [{ name = "A" }]"#);
    assert!(!env.can_keep_instance_of(&a), "variables are fixed at instantiation");
    let secret = effective(r#"secrets = [{ name = "KEY", from = "environment", expose = true, variable = "KEY" }]"#);
    assert!(!secret.can_keep_instance_of(&a), "an exposed secret is a variable");
    assert!(secret.can_keep_instance_of(&secret));
}

#[test]
fn of_two_grants_for_the_same_thing_the_first_applies() {
    for [first, second] in [
        [
            r#"files = [{ host = "/srv", guest = "/data" }]"#,
            r#"files = [{ host = "/home", guest = "/data", access = "read-write" }]"#,
        ],
        [
            r#"env = [{ name = "TZ", value = "UTC" }]"#,
            r#"env = [{ name = "TZ", value = "CET" }]"#,
        ],
        [r#"config = { a = "1" }"#, r#"config = { a = "2" }"#],
        [r#"keyvalue = { quota = "1KiB" }"#, r#"keyvalue = { quota = "1MiB" }"#],
        [r#"clock = { frozen = 1 }"#, r#"clock = { frozen = 2 }"#],
    ] {
        let [one, other] = [first, second].map(|lines| one_grant(lines).unwrap().grants.remove(0));
        assert_ne!(one.rules, other.rules);
        let both = EffectiveRights::of_grants(&declares_all(), [&one, &other]);
        assert_eq!(both.rules, one.rules, "{second}");
    }
    let [always, once] = [
        "config = { a = \"1\", b = \"1\" }",
        "config = { a = \"2\" }\nscope = \"once\"\nissued = 1",
    ]
    .map(|lines| one_grant(lines).unwrap().grants.remove(0));
    let config = EffectiveRights::of_grants(&declares_all(), [&always, &once])
        .rules
        .config;
    let values: Vec<_> = config
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(values, [("a", "2"), ("b", "1")], "a grant for one call comes first");
    // Different things add up.
    let [one, other] =
        [r#"config = { a = "1" }"#, r#"config = { b = "2" }"#].map(|lines| one_grant(lines).unwrap().grants.remove(0));
    assert_eq!(
        EffectiveRights::of_grants(&declares_all(), [&one, &other])
            .rules
            .config
            .len(),
        2
    );
}
