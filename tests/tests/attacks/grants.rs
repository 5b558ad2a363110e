//! Changes of the grants file while the host runs.

use std::fs;

use serde_json::json;
use toolwit::ErrorKind;

use crate::host::{Setup, TestHost};

const READ: &str = r#"files = [{ host = "{dir}/data", guest = "/data" }]"#;

async fn host_with_read_grant() -> TestHost {
    let host = Setup::new().grant(READ).start().await;
    fs::write(host.data().join("a"), "inside").unwrap();
    host
}

async fn may_read(host: &TestHost) -> bool {
    host.call("read", json!({"path": "/data/a"}))
        .await
        .is_ok_and(|result| !result.is_error())
}

// attack: D7
#[tokio::test]
async fn grants_and_revocations_apply_from_the_next_call() {
    let host = Setup::new().grant("").start().await;
    fs::write(host.data().join("a"), "inside").unwrap();
    assert!(!may_read(&host).await);
    host.regrant(READ);
    assert!(may_read(&host).await);
    host.regrant("");
    assert!(!may_read(&host).await);
}

// attack: D7
#[tokio::test]
async fn a_session_instance_ends_when_a_right_is_revoked() {
    let host = host_with_read_grant().await;
    let jar = host.call("jar_new", json!({"content": "sweets"})).await.unwrap();
    let tools: Vec<_> = jar.providers.iter().flat_map(|provider| provider.tools()).collect();
    let look = || host.call_in(&tools, "jar_thejar_look", json!({"path": "/data/a"}));
    assert_eq!(look().await.unwrap().for_llm, "sweets and inside");
    host.regrant(&format!("{READ}\nhttp = [{{ host = \"example.com\" }}]"));
    assert_eq!(
        look().await.unwrap().for_llm,
        "sweets and inside",
        "an additional grant keeps the instance"
    );
    host.regrant(READ);
    let gone = look().await;
    // The keeper does not import HTTP, so the change revoked none of its capabilities.
    assert_eq!(gone.unwrap().for_llm, "sweets and inside");
    host.regrant("");
    let gone = look().await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::EntityGone, "{gone}");
    assert!(
        gone.message.contains("grants of the plugin") && gone.message.contains("changed"),
        "{gone}"
    );
}

// attack: D1, attack: D2
#[tokio::test]
async fn an_invalid_grants_file_denies_everything_until_it_is_fixed() {
    let host = host_with_read_grant().await;
    let file = host.grants_file();
    let good = fs::read(&file).unwrap();
    for broken in [
        &b"version = 1\npermisions = []"[..],
        b"",
        b"\xff\xfe",
        b"version = 1\0",
        &vec![b'#'; 2 << 20],
    ] {
        assert!(may_read(&host).await);
        fs::write(&file, broken).unwrap();
        let error = host.denial("read", json!({"path": "/data/a"})).await;
        assert!(error.denied[0].reason.contains("grants.toml"), "{error:?}");
        assert!(!error.message.contains('/'), "no path of the host: {error}");
        fs::write(&file, &good).unwrap();
    }
    assert!(may_read(&host).await);
    fs::remove_file(&file).unwrap();
    host.denial("read", json!({"path": "/data/a"})).await;
    fs::create_dir(&file).unwrap();
    host.denial("read", json!({"path": "/data/a"})).await;
    fs::remove_dir(&file).unwrap();
    fs::write(&file, &good).unwrap();
    assert!(may_read(&host).await);
}

// attack: D1
#[tokio::test]
async fn a_host_with_an_invalid_grants_file_does_not_start() {
    for broken in [
        "",
        "version = 1\nversion = 2",
        "version = 1\n[[grant]]\nplugin = \"../x\"\nany-version = true",
    ] {
        let error = Setup::new().file(broken).try_start().await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Configuration);
        assert!(
            error.message.contains("line ") && error.suggestion.is_some(),
            "{error:?}"
        );
    }
}

// attack: H6
#[tokio::test]
async fn a_component_with_another_digest_has_no_grants() {
    let digest = host_with_read_grant()
        .await
        .host
        .registry()
        .plugins()
        .find(|plugin| plugin.name() == "probe")
        .unwrap()
        .inspection()
        .digest
        .clone();
    let file =
        |digest: &str| format!("version = 1\n[[grant]]\nplugin = \"probe\"\ndigest = \"sha256:{digest}\"\n{READ}");
    let same = Setup::new().file(&file(&digest)).start().await;
    fs::write(same.data().join("a"), "inside").unwrap();
    assert!(may_read(&same).await);
    let other = Setup::new()
        .file(&file(&digest.chars().rev().collect::<String>()))
        .start()
        .await;
    fs::write(other.data().join("a"), "inside").unwrap();
    assert!(!may_read(&other).await);
}

// attack: D7
#[tokio::test]
async fn a_grant_for_one_call_or_one_conversation_is_used_up() {
    let once = Setup::new().grant(&format!("scope = \"once\"\n{READ}")).start().await;
    fs::write(once.data().join("a"), "inside").unwrap();
    let invalid = once.call("read", json!({"path": 1})).await.unwrap_err();
    assert_eq!(invalid.kind, ErrorKind::InvalidArguments, "{invalid}");
    assert!(may_read(&once).await, "a call that could not start did not use it");
    assert!(!may_read(&once).await, "the grant was for one call");
    let session = Setup::new()
        .grant(&format!("scope = \"session\"\n{READ}"))
        .start()
        .await;
    fs::write(session.data().join("a"), "inside").unwrap();
    assert!(may_read(&session).await && may_read(&session).await);
    let others = session.another_conversation();
    let refused = session
        .call_in(&others, "read", json!({"path": "/data/a"}))
        .await
        .unwrap();
    assert!(refused.is_error(), "the grant was for the first conversation");
    assert!(may_read(&session).await);
}

// attack: D7
#[tokio::test]
async fn invalid_arguments_of_a_session_do_not_use_a_grant() {
    let host = Setup::new().grant(&format!("scope = \"once\"\n{READ}")).start().await;
    let record = host.grants_file().with_extension("toml.used");
    for arguments in [json!({"content": 1}), json!({})] {
        let invalid = host.call("jar_new", arguments).await.unwrap_err();
        assert_eq!(invalid.kind, ErrorKind::InvalidArguments, "{invalid}");
        assert!(!record.exists(), "{invalid}");
    }
    host.call("jar_new", json!({"content": "sweets"})).await.unwrap();
    assert_eq!(fs::read_to_string(&record).unwrap().lines().count(), 1);
}

// attack: D7
#[tokio::test]
async fn an_entity_that_was_made_after_a_change_of_rights_and_variables_stays() {
    let host = host_with_read_grant().await;
    let make = || host.call("jar_new", json!({"content": "sweets"}));
    make().await.unwrap();
    // The rights and the variables of the instance change at once.
    host.regrant("env = [{ name = \"A\", value = \"1\" }]");
    let jar = make().await.unwrap();
    let tools: Vec<_> = jar.providers.iter().flat_map(|provider| provider.tools()).collect();
    let looked = host
        .call_in(&tools, "jar_thejar_look", json!({"path": "/data/a"}))
        .await;
    assert!(looked.is_ok(), "{looked:?}");
}

// attack: C19
#[tokio::test]
async fn a_grant_applies_only_to_the_plugin_that_it_names() {
    let text = format!("version = 1\n[[grant]]\nplugin = \"keeper\"\nany-version = true\n{READ}");
    let host = Setup::new().file(&text).start().await;
    fs::write(host.data().join("a"), "inside").unwrap();
    assert!(!may_read(&host).await, "the probe has no grants");
    let jar = host.call("jar_new", json!({"content": "sweets"})).await.unwrap();
    let tools: Vec<_> = jar.providers.iter().flat_map(|provider| provider.tools()).collect();
    let looked = host
        .call_in(&tools, "jar_thejar_look", json!({"path": "/data/a"}))
        .await
        .unwrap();
    assert_eq!(looked.for_llm, "sweets and inside");
}

// attack: C19, attack: B18
#[tokio::test]
async fn stored_values_belong_to_one_plugin_and_are_limited_by_its_quota() {
    let none = Setup::new().start().await;
    let message = none
        .failure("remember", json!({"bucket": "b", "key": "k", "value": "v"}))
        .await;
    assert!(message.contains("AccessDenied"), "{message}");
    assert_eq!(none.value("settings", json!({})).await, json!([]));
    let lines = "keyvalue = { quota = \"1KiB\" }\nconfig = { colour = \"red\", size = \"7\" }";
    let host = Setup::new().grant(lines).start().await;
    assert_eq!(
        host.value("settings", json!({})).await,
        json!([["colour", "red"], ["size", "7"]])
    );
    assert_eq!(
        host.value("remember", json!({"bucket": "b", "key": "k", "value": "v"}))
            .await,
        true
    );
    assert_eq!(host.value("recall", json!({"bucket": "b", "key": "k"})).await, "v");
    assert_eq!(
        host.value("recall", json!({"bucket": "c", "key": "k"})).await,
        json!(null)
    );
    let full = host
        .failure(
            "remember",
            json!({"bucket": "c", "key": "k", "value": "x".repeat(1_100)}),
        )
        .await;
    assert!(full.contains("1024 bytes"), "{full}");
    host.value("remember", json!({"bucket": "b", "key": "l", "value": "w"}))
        .await;
    assert_eq!(
        host.value("forget", json!({"bucket": "b", "key": "k"})).await,
        json!(["l"])
    );
    // Another conversation of the same plugin shares the store, as intended.
    let others = host.another_conversation();
    let recalled = host
        .call_in(&others, "recall", json!({"bucket": "b", "key": "l"}))
        .await
        .unwrap();
    assert_eq!(recalled.value.unwrap(), "w");
}

#[tokio::test]
async fn denied_values_are_listed_for_the_operator() {
    let host = Setup::new().grant("env = [{ name = \"TOOLWIT_UNSET\" }]").start().await;
    let environment = || host.call("environment", json!({}));
    let result = environment().await.unwrap();
    assert!(!result.is_error(), "the guest gets an empty list");
    assert_eq!(
        result.denied[0].reason,
        "the environment variable `TOOLWIT_UNSET` is not set in the host process, or is not valid Unicode"
    );
    host.regrant("");
    let nothing = environment().await.unwrap();
    assert!(
        nothing.denied.is_empty(),
        "programs in C read it in any case: {:?}",
        nothing.denied
    );
    host.regrant("env = [{ name = \"A\", value = \"1\" }]");
    assert!(environment().await.unwrap().denied.is_empty());
    let stored = host
        .call("remember", json!({"bucket": "b", "key": "k", "value": "v"}))
        .await
        .unwrap();
    assert_eq!(stored.denied[0].access, "use a key–value store");
    host.regrant("keyvalue = { quota = \"1KiB\" }");
    let stored = host
        .call("remember", json!({"bucket": "b", "key": "k", "value": "v"}))
        .await
        .unwrap();
    assert!(stored.denied.is_empty());
}

// attack: H6
#[tokio::test]
async fn changed_component_announces_the_grants_that_it_lost_once() {
    let other = "1".repeat(64);
    let stale = format!("version = 1\n[[grant]]\nplugin = \"probe\"\ndigest = \"sha256:{other}\"\n{READ}\n");
    let host = Setup::new().file(&stale).start().await;
    let first = host.call("arguments", json!({})).await.unwrap();
    let [lost] = first.denied.as_slice() else {
        panic!("{:?}", first.denied)
    };
    assert!(
        lost.access.starts_with("use its grant `files read /") && lost.reason.contains("another version"),
        "{lost:?}"
    );
    let second = host.call("arguments", json!({})).await.unwrap();
    assert!(second.denied.is_empty(), "it is announced once");
    let kept = format!("{stale}[[grant]]\nplugin = \"probe\"\nany-version = true\n{READ}\n");
    let host = Setup::new().file(&kept).start().await;
    let first = host.call("arguments", json!({})).await.unwrap();
    assert!(first.denied.is_empty(), "it lost nothing: {:?}", first.denied);
}
