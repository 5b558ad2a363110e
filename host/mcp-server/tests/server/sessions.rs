//! Sessions up to 2025-11-25.

use serde_json::{Value, json};

use crate::line_client::LineClient;

#[tokio::test]
async fn tools_are_listed_and_called() {
    let mut client = LineClient::session().await;
    let listed = client.request("list", "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(tool("hello")["description"], "Greets.");
    assert_eq!(tool("hello")["inputSchema"]["type"], "object");
    assert_eq!(
        tool("numbers")["outputSchema"]["required"],
        json!(["result"]),
        "an object for older clients"
    );
    let hello = client.call("hello").await;
    assert_eq!(hello["result"]["content"], json!([{"type": "text", "text": "hello"}]));
    assert_eq!(hello["result"].get("resultType"), None, "of a later revision");
    let numbers = client.call("numbers").await;
    assert_eq!(numbers["result"]["structuredContent"], json!({"result": [1, 2, 3]}));
}

#[tokio::test]
async fn a_failing_tool_is_a_result_and_an_unknown_one_an_error() {
    let mut client = LineClient::session().await;
    let failed = client.call("fail").await;
    assert_eq!(failed["result"]["isError"], true);
    assert_eq!(failed["result"]["content"][0]["text"], "out of paper");
    let panicked = client.call("panics").await;
    assert_eq!(panicked["result"]["isError"], true);
    let unknown = client.call("helo").await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"].as_str().unwrap().contains("`hello`"),
        "{unknown}"
    );
    let superfluous = json!({"name": "add", "arguments": {"a": 1, "x": 1}});
    let superfluous = client.request("call", "tools/call", superfluous).await;
    assert_eq!(superfluous["result"]["isError"], true, "the model can correct it");
    let dummy = json!({"name": "numbers", "arguments": {"random_string": "x"}});
    let dummy = client.request("call", "tools/call", dummy).await;
    assert_ne!(dummy["result"]["isError"], true, "the tool has no parameters: {dummy}");
    assert!(dummy["error"].is_null(), "{dummy}");
    let encoded = json!({"name": "add", "arguments": {"a": "1", "b": "[2, \"3\"]"}});
    let encoded = client.request("call", "tools/call", encoded).await;
    assert_eq!(encoded["result"]["content"][0]["text"], "6", "{encoded}");
    assert_eq!(client.call("hello").await["result"]["content"][0]["text"], "hello");
}

#[tokio::test]
async fn methods_of_an_entity_are_announced_before_the_result_that_has_it() {
    let mut client = LineClient::session().await;
    assert!(!client.tool_names().await.contains(&"cart_c1_count".to_owned()));
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "open_cart"}}))
        .await;
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    let opened = client.next().await;
    assert_eq!(
        opened["result"]["structuredContent"]["available_tools"],
        json!(["cart_c1_count"])
    );
    assert!(client.tool_names().await.contains(&"cart_c1_count".to_owned()));
    assert_eq!(client.call("cart_c1_count").await["result"]["content"][0]["text"], "7");
    let mut other = LineClient::session().await;
    assert!(
        !other.tool_names().await.contains(&"cart_c1_count".to_owned()),
        "of another session"
    );
}

#[tokio::test]
async fn progress_the_user_and_the_trace_are_connected() {
    let mut client = LineClient::session().await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let meta = json!({"progressToken": "p", "traceparent": parent});
    let params = json!({"name": "steps", "_meta": meta});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        .await;
    for (number, text) in [(1.0, "one"), (2.0, "two"), (3.0, "three")] {
        let progress = client.next().await;
        let expected = json!({"progressToken": "p", "progress": number, "message": text});
        assert_eq!(progress["params"], expected, "{progress}");
    }
    let result = client.next().await;
    assert_eq!(result["result"]["content"][0]["text"], parent);
    let user = &result["result"]["content"][1];
    assert_eq!(
        (&user["text"], &user["annotations"]["audience"]),
        (&json!("for the user"), &json!(["user"]))
    );
    let untraced = client.call("steps").await;
    assert_eq!(untraced["result"]["content"][0]["text"], "untraced", "{untraced}");
}

// attack: G7
#[tokio::test]
async fn a_cancelled_call_ends_without_an_answer() {
    let mut client = LineClient::session().await;
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}}))
        .await;
    let cancel =
        |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    client.send(&cancel(json!("unknown"))).await;
    client.send(&cancel(json!(1))).await;
    client.send(&cancel(json!(1))).await;
    let next = client.request("after", "tools/call", json!({"name": "hello"})).await;
    assert_eq!(next["result"]["content"][0]["text"], "hello");
    let rest = client.finish().await;
    assert!(rest.iter().all(|message| message["id"] != 1), "{rest:?}");
}
