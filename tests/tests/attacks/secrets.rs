//! Secrets: hidden from guests unless exposed, and redacted in all output.

use serde_json::json;
use toolwit::{ErrorKind, ToolContext};

use crate::host::Setup;
use crate::server::{Answer, ScriptedResolver, Server};

/// A secret that could be the id of an entity.
const NAME: &str = "hunter2-and-more";

const VALUE: &str = "hunter2-\"quoted\"/and more";

// attack: C19
#[tokio::test]
async fn an_exposed_secret_is_readable_by_its_guest_and_redacted_elsewhere() {
    let hidden = r#"secrets = [{ name = "key", host = "api.example.com", bearer = true }]"#;
    let host = Setup::new().grant(hidden).secret("key", VALUE).start().await;
    assert_eq!(host.value("environment", json!({})).await, json!([]));
    let exposed = r#"secrets = [{ name = "key", expose = true, variable = "KEY" }]"#;
    let host = Setup::new().grant(exposed).secret("key", VALUE).start().await;
    assert_eq!(
        host.value("environment", json!({})).await,
        json!([["KEY", "[redacted]"]])
    );
    // Output, results and errors of the guest.
    let result = host
        .call("say", json!({"text": format!("the key is {VALUE}")}))
        .await
        .unwrap();
    assert_eq!(result.for_llm, "the key is [redacted]");
    assert!(!result.log.unwrap().contains("hunter2"));
    let failed = host.failure("read", json!({"path": format!("/{VALUE}")})).await;
    assert!(!failed.contains("hunter2"), "{failed}");
}

// attack: C19, accept: 118, accept: 130
#[tokio::test]
async fn a_secret_is_looked_up_at_each_call_and_for_each_conversation() {
    let grant = r#"secrets = [{ name = "key", from = "conversation", expose = true, variable = "KEY" }]"#;
    let mut host = Setup::new().grant(grant).start().await;
    let missing = host.call("environment", json!({})).await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::MissingKey, "{missing}");
    assert!(missing.message.contains("`key`"), "{missing}");
    let lengths = |value: &str| (value.to_owned(), "x".repeat(value.len()));
    for (key, same_length) in [lengths("first-user-key"), lengths("the-key-of-the-second-user")] {
        host.context = ToolContext::new().with("key", key.clone());
        let seen = host.value("say", json!({"text": same_length})).await;
        assert_eq!(seen, same_length);
        let shown = host.value("say", json!({"text": key})).await;
        assert_eq!(shown, "[redacted]", "the key of this conversation is redacted");
    }
    let other = host.value("say", json!({"text": "first-user-key"})).await;
    assert_eq!(
        other, "first-user-key",
        "the key of another conversation is not redacted"
    );
}

// attack: K6
#[tokio::test]
async fn a_secret_is_not_the_id_of_an_entity_or_the_name_of_a_tool() {
    let exposed = r#"secrets = [{ name = "key", expose = true, variable = "KEY" }]"#;
    let host = Setup::new().grant(exposed).secret("key", NAME).start().await;
    let plain = host.call("pile_new", json!({"id": "the-pile"})).await.unwrap();
    assert_eq!(plain.providers.len(), 1);
    for id in [NAME.to_owned(), format!("a{NAME}b"), hex(NAME)] {
        let result = host.call("pile_new", json!({ "id": id })).await.unwrap();
        assert!(result.providers.is_empty(), "an entity has the id {id}");
        let shown = format!("{} {:?}", result.for_llm, result.value);
        assert!(
            shown.contains("its `id` contains a secret") && !shown.contains(&id),
            "{shown}"
        );
    }
    // The tool of a follow-up call is named in an error.
    let begun = json!({"tool": NAME, "arguments": "{}"});
    let result = host.call("begin", begun).await.unwrap();
    let shown = format!("{result:?} {:?}", result.source);
    assert!(
        result.is_error() && result.for_llm.contains("[redacted]") && !shown.contains(NAME),
        "{shown}"
    );
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

// attack: C14, attack: C15
#[tokio::test]
async fn a_secret_is_never_sent_unencrypted() {
    let server = Server::start(Answer::Echo).await;
    let grant = format!(
        "http = [{{ host = \"api.example.com\", scheme = \"http\", port = {port}, addresses = [\"127.0.0.1\"] }}]\n\
         secrets = [{{ name = \"key\", host = \"api.example.com\", port = {port}, bearer = true }}]",
        port = server.port
    );
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let host = Setup::new()
        .grant(&grant)
        .resolver(resolver)
        .secret("key", VALUE)
        .start()
        .await;
    let authority = format!("api.example.com:{}", server.port);
    let request = json!({"method": "GET", "scheme": "http", "authority": authority, "path": "/",
        "headers": [["authorization", format!("Bearer {VALUE}")]], "body": ""});
    let reply = host.value("fetch", request).await;
    assert!(!server.requests().is_empty());
    // The guest guessed the secret and sent it itself. The echo of the server is redacted nevertheless.
    assert!(!reply.to_string().contains("hunter2"), "{reply}");
    let plain =
        json!({"method": "GET", "scheme": "http", "authority": authority, "path": "/", "headers": [], "body": ""});
    host.value("fetch", plain).await;
    assert!(!server.requests()[1].contains("hunter2"), "{:?}", server.requests());
}

#[tokio::test]
async fn a_store_that_others_can_read_is_refused() {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let grant = r#"secrets = [{ name = "key", expose = true, variable = "KEY" }]"#;
        let host = Setup::new().grant(grant).secret("key", VALUE).start().await;
        let store = host.directory.path().join("own/secrets.toml");
        let mode = std::fs::metadata(&store).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = host.call("environment", json!({})).await.unwrap_err();
        assert!(
            error.message.contains("other users can access it") && !error.message.contains("hunter2"),
            "{error}"
        );
    }
}
