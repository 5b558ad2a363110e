//! Lifecycles, malformed messages, and requests without a session.

use serde_json::json;

use crate::line_client::{LineClient, meta, meta_of};

// attack: G2
#[tokio::test]
async fn unknown_versions_are_negotiated_and_a_session_begins_once() {
    let mut client = LineClient::connect().await;
    let early = client.request("early", "tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32600, "{early}");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let ping = client.request("ping", "ping", json!({})).await;
    assert_eq!(ping["result"], json!({}));
    let answer = client.initialize("1999-01-01").await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
    let again = client.initialize("2025-11-25").await;
    assert_eq!(again["error"]["code"], -32600, "{again}");
    assert_eq!(client.call("hello").await["result"]["content"][0]["text"], "hello");
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answer = LineClient::connect().await.initialize(version).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
    }
    let later = LineClient::connect().await.initialize("2026-07-28").await;
    assert_eq!(
        later["result"]["protocolVersion"], "2025-11-25",
        "it has no `initialize`"
    );
}

// attack: G2, attack: G3
#[tokio::test]
async fn an_invalid_first_request_leaves_the_connection_open() {
    let info = json!({"name": "c", "version": "1"});
    let other_version = json!({"_meta": meta_of("2031-01-01")});
    let later = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info, "_meta": meta()});
    for (method, params, code, problem) in [
        (
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
            -32602,
            "`clientInfo`",
        ),
        (
            "initialize",
            json!({"protocolVersion": "2025-06-18", "clientInfo": info}),
            -32602,
            "`capabilities`",
        ),
        (
            "initialize",
            json!({"protocolVersion": 5, "capabilities": {}, "clientInfo": info}),
            -32602,
            "string",
        ),
        ("initialize", json!([]), -32602, "object"),
        ("initialize", later, -32601, "initialize"),
        ("tools/list", other_version, -32022, "version"),
        ("server/discover", json!({"_meta": meta()}), 0, ""),
    ] {
        let mut client = LineClient::connect().await;
        let answer = client.request("first", method, params).await;
        if code != 0 {
            assert_eq!(answer["error"]["code"], code, "{method} {answer}");
            assert!(
                answer["error"]["message"].as_str().unwrap().contains(problem),
                "{answer}"
            );
        }
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client.begin_session(json!({})).await;
        assert_eq!(client.call("hello").await["result"]["content"][0]["text"], "hello");
    }
}

#[tokio::test]
async fn a_line_is_a_batch_in_revision_2025_03_26_only() {
    let ping = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let call = json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {"name": "hello"}});
    for (version, is_taken) in [("2025-03-26", true), ("2025-06-18", false)] {
        let mut client = LineClient::connect().await;
        client.initialize(version).await;
        client.send(&json!([ping("a"), call, {"id": 7}])).await;
        if !is_taken {
            assert_eq!(client.next().await["error"]["code"], -32600);
            continue;
        }
        let mut answers = [client.next().await, client.next().await, client.next().await];
        answers.sort_by_key(|answer| answer["id"].to_string());
        assert_eq!(answers[0]["result"], json!({}));
        assert_eq!(answers[1]["result"]["content"][0]["text"], "hello");
        assert_eq!(
            (&answers[2]["id"], &answers[2]["error"]["code"]),
            (&json!(7), &json!(-32600))
        );
    }
}

#[tokio::test]
async fn a_first_message_with_a_byte_order_mark_begins_a_session() {
    let mut client = LineClient::connect().await;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    client.send_line(format!("\u{feff}{message}").as_bytes()).await;
    let answer = client.next().await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
}

// attack: G3, attack: G4, attack: G8
#[tokio::test]
async fn malformed_messages_leave_the_connection_alive() {
    let mut client = LineClient::session().await;
    let lines: [(&[u8], i64); 6] = [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":[]}}"#,
            -32602,
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}"#, -32601),
    ];
    for (line, code) in lines {
        client.send_line(line).await;
        let answer = client.next().await;
        assert_eq!(
            answer["error"]["code"],
            code,
            "{} → {answer}",
            String::from_utf8_lossy(line)
        );
    }
    client.send_line(&vec![b'x'; 17 << 20]).await;
    assert_eq!(client.next().await["error"]["code"], -32600, "too long");
    client.send_line(b"").await;
    client
        .send(&json!({"jsonrpc": "2.0", "id": "nobody", "result": {}}))
        .await;
    let cursor = client
        .request("list", "tools/list", json!({"cursor": "../../etc"}))
        .await;
    assert_eq!(cursor["error"]["code"], -32602);
    assert_eq!(client.call("hello").await["result"]["content"][0]["text"], "hello");
}

// attack: G3
#[tokio::test]
async fn an_id_in_use_is_refused() {
    let mut client = LineClient::session().await;
    let wait = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "wait"}});
    client.send(&wait).await;
    client.send(&wait).await;
    let refused = client.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32600)));
}

// attack: G4
#[tokio::test]
async fn requests_that_were_piped_in_are_answered_after_the_end_of_the_input() {
    let mut client = LineClient::session().await;
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello"}}))
        .await;
    client.send_line(b"{\"jsonrpc\": \"2.0\", \"id\": 2, \"meth").await;
    let rest = client.finish().await;
    assert!(
        rest.iter()
            .any(|message| message["result"]["content"][0]["text"] == "hello"),
        "{rest:?}"
    );
}

#[tokio::test]
async fn requests_without_a_session_declare_their_version() {
    let mut client = LineClient::connect().await;
    let missing = client.request("1", "server/discover", json!({})).await;
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    let discovered = client.request("2", "server/discover", json!({"_meta": meta()})).await;
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    let listed = client.request("3", "tools/list", json!({"_meta": meta()})).await;
    let result = &listed["result"];
    assert_eq!(
        (&result["resultType"], &result["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(result["ttlMs"].is_u64());
    let numbers = result["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "numbers")
        .unwrap();
    assert_eq!(numbers["outputSchema"]["type"], "array");
    let call = json!({"name": "numbers", "arguments": {}, "_meta": meta()});
    let called = client.request("4", "tools/call", call).await;
    assert_eq!(called["result"]["structuredContent"], json!([1, 2, 3]), "any JSON");
    let undeclared = client.request("5", "tools/list", json!({})).await;
    assert_eq!(undeclared["error"]["code"], -32602, "{undeclared}");
    let ping = client.request("6", "ping", json!({"_meta": meta()})).await;
    assert_eq!(ping["error"]["code"], -32601, "of an earlier revision");
    let initialize = client.request("7", "initialize", json!({"_meta": meta()})).await;
    assert_eq!(initialize["error"]["code"], -32601, "of an earlier revision");
}
