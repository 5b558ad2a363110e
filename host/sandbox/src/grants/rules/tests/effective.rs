//! Tests of the effective rights of a plugin.

use super::*;

// attack: C8
#[test]
fn variable_is_granted_by_its_name() {
    let rights = rights_of(r#"env = [{ name = "LANG" }, { name = "TZ", value = "UTC" }]"#);
    let may = |name| allows(&rights, &AccessRequest::Variable(name));
    assert!(may("LANG") && may("TZ"));
    for other_name in ["PATH", "HOME", "lang", "LANG2", ""] {
        assert!(!may(other_name), "{other_name}");
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
    let grants = parse_grant_with(lines).unwrap();
    let declared = DeclaredCapabilities::from_imports(["wasi:clocks/wall-clock@0.2.0"]);
    let rights_of_clock_plugin = EffectiveRights::new(&declared, &grants, "p", DIGEST);
    assert_eq!(
        rights_of_clock_plugin,
        EffectiveRights {
            declared,
            ..EffectiveRights::default()
        }
    );
    let rights = rights_of(lines);
    assert!(
        rights.rules.http.len() == 1
            && rights.rules.files.len() == 1
            && rights.rules.env.len() == 1
            && rights.rules.secrets.len() == 1
    );
    assert!(rights.rules.config.len() == 1 && rights.rules.keyvalue.is_some() && rights.rules.tools.len() == 1);
}

#[test]
fn instance_is_kept_only_if_no_right_was_revoked() {
    let one_host = rights_of(r#"http = [{ host = "a" }]"#);
    let two_hosts = rights_of(r#"http = [{ host = "a" }, { host = "b" }]"#);
    assert!(two_hosts.can_keep_instance_of(&one_host), "a rule was added");
    assert!(!one_host.can_keep_instance_of(&two_hosts), "a rule was revoked");
    let one_variable = rights_of(r#"env = [{ name = "A" }]"#);
    assert!(
        !one_variable.can_keep_instance_of(&one_host),
        "variables are fixed at instantiation"
    );
    let exposed_secret =
        rights_of(r#"secrets = [{ name = "KEY", from = "environment", expose = true, variable = "KEY" }]"#);
    assert!(
        !exposed_secret.can_keep_instance_of(&one_host),
        "exposed secrets are variables"
    );
    assert!(exposed_secret.can_keep_instance_of(&exposed_secret));
}

#[test]
fn of_two_rules_for_the_same_resource_the_first_applies() {
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
        let [first_grant, second_grant] =
            [first, second].map(|lines| parse_grant_with(lines).unwrap().grants.remove(0));
        assert_ne!(first_grant.rules, second_grant.rules);
        let rights = EffectiveRights::of_grants(&declared_capabilities(), [&first_grant, &second_grant]);
        assert_eq!(rights.rules, first_grant.rules, "{second}");
    }
    let [permanent_grant, grant_for_one_call] = [
        "config = { a = \"1\", b = \"1\" }",
        "config = { a = \"2\" }\nscope = \"once\"\nissued = 1",
    ]
    .map(|lines| parse_grant_with(lines).unwrap().grants.remove(0));
    let config = EffectiveRights::of_grants(&declared_capabilities(), [&permanent_grant, &grant_for_one_call])
        .rules
        .config;
    let values: Vec<_> = config
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(values, [("a", "2"), ("b", "1")], "a grant for one call comes first");
    // Rules for different settings all apply.
    let [first_grant, second_grant] = [r#"config = { a = "1" }"#, r#"config = { b = "2" }"#]
        .map(|lines| parse_grant_with(lines).unwrap().grants.remove(0));
    assert_eq!(
        EffectiveRights::of_grants(&declared_capabilities(), [&first_grant, &second_grant])
            .rules
            .config
            .len(),
        2
    );
}
