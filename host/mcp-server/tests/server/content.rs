//! Prompts, resources and completion.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwit_mcp_server::{McpServer, ServedContent};

use crate::line_client::{LineClient, meta};
use crate::server;

const CONTENT: &str = r#"
    [[prompt]]
    name = "review"
    description = "Reviews a change"
    argument = [{ name = "language", values = ["Rust", "Ruby", "Go"] }, { name = "focus", required = false }]
    message = [
        { text = "Review this {{language}} code. {{focus}}" },
        { resource = "rules://review" },
        { role = "assistant", text = "Paste it." },
    ]

    [[resource]]
    uri = "rules://review"
    file = "rules.md"

    [[resource]]
    uri = "notes://{topic}/text"
    file = "notes/{{topic}}.md"
    variable = [{ name = "topic", values = ["tea", "trains"] }]
"#;

/// A server with content, and the directory of its files.
pub(crate) async fn library() -> (McpServer, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("notes")).unwrap();
    fs::write(directory.path().join("rules.md"), "Errors have a hint.").unwrap();
    fs::write(directory.path().join("notes/tea.md"), "Green.").unwrap();
    fs::write(directory.path().join("notes/secret.md"), "not listed").unwrap();
    let content = ServedContent::from_toml(CONTENT, directory.path()).unwrap();
    (server().await.with_content(content), directory)
}

#[tokio::test]
async fn prompt_is_filled_and_a_wrong_argument_is_refused() {
    let (server, _directory) = library().await;
    let mut client = LineClient::session_with(server, json!({})).await;
    let listed = client.request("1", "prompts/list", json!({})).await;
    let arguments = &listed["result"]["prompts"][0]["arguments"];
    assert_eq!(
        (&arguments[0]["required"], &arguments[1]["required"]),
        (&json!(true), &json!(false))
    );
    let get = json!({"name": "review", "arguments": {"language": "Rust {{focus}}"}});
    let prompt = client.request("2", "prompts/get", get).await;
    let messages = &prompt["result"]["messages"];
    assert_eq!(
        messages[0]["content"]["text"], "Review this Rust {{focus}} code. ",
        "a value is not a template"
    );
    assert_eq!(messages[1]["content"]["resource"]["text"], "Errors have a hint.");
    assert_eq!(messages[2]["role"], "assistant");
    for arguments in [
        json!({}),
        json!({"language": 7}),
        json!({"language": "Go", "tone": "mild"}),
    ] {
        let get = json!({"name": "review", "arguments": arguments});
        let refused = client.request("3", "prompts/get", get).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let unknown = client.request("4", "prompts/get", json!({"name": "rewiev"})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn resource_of_the_file_is_read_and_no_other() {
    let (server, directory) = library().await;
    let mut client = LineClient::connected_to(server);
    let with_meta = |mut params: Value| {
        params["_meta"] = meta();
        params
    };
    let listed = client.request("1", "resources/list", with_meta(json!({}))).await;
    assert_eq!(listed["result"]["resources"][0]["mimeType"], "text/markdown");
    let templates = client
        .request("2", "resources/templates/list", with_meta(json!({})))
        .await;
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "notes://{topic}/text"
    );
    let read = |uri: &str| with_meta(json!({"uri": uri}));
    let tea = client.request("3", "resources/read", read("notes://tea/text")).await;
    assert_eq!(tea["result"]["contents"][0]["text"], "Green.", "{tea}");
    fs::write(directory.path().join("notes/tea.md"), "Black.").unwrap();
    let tea = client.request("4", "resources/read", read("notes://tea/text")).await;
    assert_eq!(tea["result"]["contents"][0]["text"], "Black.", "a change is visible");
    for uri in [
        "notes://secret/text",
        "notes://trains/text",
        "notes://..%2Frules/text",
        "file:///etc/passwd",
        "",
    ] {
        let refused = client.request("5", "resources/read", read(uri)).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["data"]["uri"]),
            (&json!(-32602), &json!(uri))
        );
        assert!(
            !refused.to_string().contains(directory.path().to_str().unwrap()),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_resource_that_exists_and_cannot_be_read_is_an_internal_error() {
    let (server, directory) = library().await;
    fs::remove_file(directory.path().join("rules.md")).unwrap();
    fs::remove_file(directory.path().join("notes/tea.md")).unwrap();
    fs::create_dir(directory.path().join("notes/tea.md")).unwrap();
    let mut client = LineClient::connected_to(server);
    for uri in ["rules://review", "notes://tea/text"] {
        let read = json!({"uri": uri, "_meta": meta()});
        let failed = client.request("1", "resources/read", read).await;
        assert_eq!(failed["error"]["code"], -32603, "{failed}");
        assert!(
            !failed.to_string().contains(directory.path().to_str().unwrap()),
            "{failed}"
        );
    }
}

#[tokio::test]
async fn values_are_completed_for_what_exists() {
    let (server, _directory) = library().await;
    let mut client = LineClient::session_with(server, json!({})).await;
    let complete = |reference: Value, argument: &str, typed: &str| json!({"ref": reference, "argument": {"name": argument, "value": typed}});
    let prompt = json!({"type": "ref/prompt", "name": "review"});
    let rust = client
        .request("1", "completion/complete", complete(prompt.clone(), "language", "ru"))
        .await;
    let completion = &rust["result"]["completion"];
    assert_eq!(
        (&completion["values"], &completion["total"]),
        (&json!(["Rust", "Ruby"]), &json!(2))
    );
    let free = client
        .request("2", "completion/complete", complete(prompt, "focus", "x"))
        .await;
    assert_eq!(free["result"]["completion"]["values"], json!([]));
    let template = json!({"type": "ref/resource", "uri": "notes://{topic}/text"});
    let topic = client
        .request("3", "completion/complete", complete(template, "topic", ""))
        .await;
    assert_eq!(topic["result"]["completion"]["values"], json!(["tea", "trains"]));
    let unknown = json!({"type": "ref/prompt", "name": "none"});
    let refused = client
        .request("4", "completion/complete", complete(unknown, "a", ""))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn subscriber_is_told_of_a_changed_file_and_new_content() {
    let (server, directory) = library().await;
    let mut client = LineClient::session_with(server.clone(), json!({})).await;
    let missing = client
        .request("1", "resources/subscribe", json!({"uri": "rules://other"}))
        .await;
    assert_eq!(missing["error"]["code"], -32002, "{missing}");
    let subscribed = client
        .request("2", "resources/subscribe", json!({"uri": "rules://review"}))
        .await;
    assert_eq!(subscribed["result"], json!({}));
    // The files are compared with those of the start.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    fs::write(directory.path().join("rules.md"), "Errors have a hint, and a cause.").unwrap();
    let updated = client.next().await;
    assert_eq!(updated["method"], "notifications/resources/updated", "{updated}");
    assert_eq!(updated["params"]["uri"], "rules://review");
    server.set_content(ServedContent::default());
    assert_eq!(client.next().await["method"], "notifications/prompts/list_changed");
    assert_eq!(client.next().await["method"], "notifications/resources/list_changed");
    let listed = client.request("3", "prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"], json!([]));
}

#[test]
fn invalid_content_is_refused_with_its_entry() {
    let invalid = |text: &str| {
        ServedContent::from_toml(text, ".".as_ref())
            .unwrap_err()
            .message
            .clone()
    };
    let cases = [
        (
            "[[prompt]]\nname = 'p'\nmessage = [{ text = '{{x}}' }]",
            "`{{x}}` is not an argument",
        ),
        ("[[prompt]]\nname = 'p'\nmessage = []", "no `message`"),
        (
            "[[prompt]]\nname = 'p'\nmessage = [{ image = 'a.txt' }]",
            "is not a png",
        ),
        ("[[resource]]\nuri = 'x://y'", "`text` or `file`"),
        ("[[resource]]\nuri = 'y'\ntext = ''", "scheme"),
        ("[[resource]]\nuri = 'x://{a'\ntext = ''", "no `}`"),
        ("[[resource]]\nuri = 'x://{a}'\ntext = '{{b}}'", "not a variable"),
        (
            "[[resource]]\nuri = 'x://y'\ntext = ''\n[[resource]]\nuri = 'x://y'\ntext = ''",
            "two resources",
        ),
        ("prompts = 1", "line 1"),
    ];
    for (text, problem) in cases {
        let message = invalid(text);
        assert!(message.contains(problem), "{message}");
    }
}
