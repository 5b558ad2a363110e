//! Processes that misbehave.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwit_agent::ToolSource;
use toolwit_core::limits::{DESCRIPTION_CHARS_MAX, MCP_TOOLS_MAX};
use toolwit_core::{ErrorKind, ToolContext};
use toolwit_mcp_client::{ChangedTools, ClientOptions, McpServer, RevisionChoice};

use crate::{call, config, names, server, works};

/// Returns the test server with the handshake only, so that a test does not wait for the server to ignore another question.
fn handshake(behaviour: &str) -> McpServer {
    McpServer::new(
        config(behaviour).with_revision(RevisionChoice::Handshake),
        ClientOptions::default(),
    )
}

// attack: G9
#[tokio::test]
async fn a_hundred_thousand_tools_are_cut_off() {
    let server = server("many-tools");
    let report = server.report(&ToolContext::new()).await.unwrap();
    assert_eq!(report.tools, MCP_TOOLS_MAX);
    assert!(
        report
            .withheld
            .iter()
            .any(|(_, reason)| reason.contains("more than 1024 tools")),
        "{:?}",
        report.withheld
    );
    let at_once = handshake("many-tools-at-once")
        .tools(&ToolContext::new())
        .await
        .err()
        .unwrap();
    assert!(at_once.message.contains("values and names"), "{at_once}");
}

// attack: G9
#[tokio::test]
async fn a_huge_description_is_cut_and_has_no_control_characters() {
    let server = server("huge-description");
    let tools = server.tools(&ToolContext::new()).await.unwrap();
    let description = &tools[0].definition().description;
    assert!(description.chars().count() <= DESCRIPTION_CHARS_MAX);
    assert!(!description.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(tools[1].definition().name(), "small");
}

// attack: G9
#[tokio::test]
async fn repeating_and_endless_pages_end() {
    let server = server("cursor-loop");
    assert_eq!(names(&server).await, ["t0", "t1", "t2"]);
    let endless = crate::server("endless-pages")
        .report(&ToolContext::new())
        .await
        .unwrap();
    assert!(endless.withheld[0].1.contains("pages"), "{endless:?}");
}

// attack: G9
#[tokio::test]
async fn invalid_tools_are_withheld_and_the_others_work() {
    let server = server("invalid-tools");
    let report = server.report(&ToolContext::new()).await.unwrap();
    assert_eq!(names(&server).await, ["no_schema", "twice", "remote", "cycle"]);
    let reasons: Vec<_> = report.withheld.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert!(report.withheld.iter().all(|(name, _)| !name.contains('\u{1b}')));
}

// attack: G9
#[tokio::test]
async fn a_silent_server_is_given_up() {
    let silent = config("silent").with_startup_timeout(Duration::from_millis(300));
    let server = McpServer::new(silent, ClientOptions::default());
    let error = server.tools(&ToolContext::new()).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Timeout);
    let started = Instant::now();
    let again = server.tools(&ToolContext::new()).await.err().unwrap();
    assert_eq!(again.message, error.message);
    assert!(
        started.elapsed() < Duration::from_millis(250),
        "it is not started again at once"
    );
}

#[tokio::test]
async fn a_server_is_starting_until_it_has_listed_its_tools() {
    let context = ToolContext::new();
    let silent = handshake("silent-list");
    assert!(!silent.is_starting(&context), "it was not contacted");
    let listing = silent.tools(&context);
    let outcome = tokio::time::timeout(Duration::from_millis(100), listing).await;
    assert!(outcome.is_err() && silent.is_starting(&context));
    let server = server("plain");
    names(&server).await;
    assert!(!server.is_starting(&context));
}

// attack: G9
#[tokio::test]
async fn a_server_that_exits_is_reported_with_its_last_words() {
    let error = server("exits").tools(&ToolContext::new()).await.err().unwrap();
    assert!(error.message.contains("its process has ended"), "{error}");
    assert!(
        error.message.ends_with("ends with `cannot find the database[31m`"),
        "{error}"
    );
    assert_eq!(error.log.as_deref(), Some("cannot find the database[31m"));
    let mid_call = call(&server("exits-mid-call"), "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert_eq!(mid_call.report().kind, ErrorKind::ToolUnavailable);
    assert!(
        mid_call.report().message.contains("may have taken effect")
            && mid_call.report().message.contains("out of memory"),
        "{mid_call}"
    );
}

// attack: G9
#[tokio::test]
async fn floods_do_not_stop_a_server_from_working() {
    for behaviour in ["banner", "stderr-flood"] {
        works(&server(behaviour)).await;
    }
    for behaviour in ["floods-stderr-in-call", "floods-notifications"] {
        let flooded = call(&server(behaviour), "echo", json!({"text": "x"})).await.unwrap();
        assert_eq!(flooded.for_llm, "flooded", "{behaviour}");
    }
}

// attack: G9, attack: G4
#[tokio::test]
async fn messages_and_results_have_limits() {
    let endless = handshake("endless-line")
        .tools(&ToolContext::new())
        .await
        .err()
        .unwrap();
    assert!(endless.message.contains("more than 16 MiB"), "{endless}");
    let giant = call(&server("giant-result"), "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert_eq!(giant.report().kind, ErrorKind::ResultBytes);
    let oversized = call(&server("oversized-message"), "echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert!(oversized.report().message.contains("more than 16 MiB"), "{oversized}");
}

// attack: G3, attack: G9
#[tokio::test]
async fn answers_with_wrong_ids_are_ignored() {
    let server = server("wrong-ids");
    for _ in 0..2 {
        let result = call(&server, "echo", json!({"text": "x"})).await.unwrap();
        assert_eq!(result.for_llm, "right");
    }
}

// attack: G9
#[tokio::test]
async fn an_answer_that_is_not_a_message_ends_its_request_at_once() {
    for (behaviour, why) in [
        ("answers-nan", "it is not JSON"),
        ("answers-deep", "it is nested deeper than 120"),
        ("answers-cut-off", "it is not JSON"),
        ("answers-on-many-lines", "it is not JSON"),
        ("answers-without-version", "its `jsonrpc` is not \"2.0\""),
        ("answers-without-result", "neither `method` nor `result` nor `error`"),
        ("answers-with-a-batch", "it is an array"),
        ("answers-with-a-surrogate", "it is not JSON"),
    ] {
        let started = Instant::now();
        let error = call(&server(behaviour), "echo", json!({"text": "x"}))
            .await
            .unwrap_err();
        let message = &error.report().message;
        assert!(
            message.contains("the answer of the server cannot be used") && message.contains(why),
            "{behaviour}: {message}"
        );
        assert!(message.ends_with("it may have taken effect"), "{message}");
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the limit of a call is a minute"
        );
    }
}

#[tokio::test]
async fn answers_of_careless_servers_are_used() {
    for behaviour in [
        "byte-order-mark",
        "without-server-info",
        "answers-in-a-batch-of-one",
        "answers-with-a-text-id",
    ] {
        let result = call(&server(behaviour), "echo", json!({"text": "hello"}))
            .await
            .unwrap();
        assert_eq!(result.for_llm, "hello", "{behaviour}");
    }
    let deep = server("deep-schema");
    assert_eq!(names(&deep).await, ["deep", "echo"]);
}

// attack: G9
#[tokio::test]
async fn requests_of_a_server_are_refused() {
    let result = call(&server("asks"), "echo", json!({"text": "x"})).await.unwrap();
    let replies = result.value.unwrap()["replies"].as_array().cloned().unwrap();
    assert_eq!(replies.len(), 4);
    let text = serde_json::to_string(&replies).unwrap();
    assert!(
        text.contains("does not offer its model") && text.contains(r#"{"action":"decline"}"#),
        "{text}"
    );
    assert!(text.contains(r#"{"roots":[]}"#), "{text}");
}

// attack: G9
#[tokio::test]
async fn a_definition_that_changes_is_withheld() {
    let context = ToolContext::new();
    let server = server("changes-its-mind");
    assert_eq!(names(&server).await, ["add", "stable", "grow"]);
    let first = crate::tool(&server, "add", &context).await;
    call(&server, "grow", json!({})).await.unwrap();
    assert_eq!(names(&server).await, ["stable", "grow"]);
    assert_eq!(server.changed_tools(&context), ["add"]);
    server.accept_changes(&context);
    assert_eq!(names(&server).await, ["add", "stable", "grow"]);
    let second = crate::tool(&server, "add", &context).await;
    assert_ne!(first.definition().digest(), second.definition().digest());

    let trusted = config("changes-its-mind").with_changed_tools(ChangedTools::Follow);
    let trusted = McpServer::new(trusted, ClientOptions::default());
    call(&trusted, "grow", json!({})).await.unwrap();
    assert_eq!(names(&trusted).await, ["add", "stable", "grow"]);
}

// attack: G9
#[tokio::test]
async fn a_definition_that_changes_during_a_disconnection_is_withheld() {
    let context = ToolContext::new();
    let directory = tempfile::tempdir().unwrap();
    let started = directory.path().join("started");
    let config = config("x").with_arguments(["changes-its-mind", started.to_str().unwrap()]);
    let server = McpServer::new(config, ClientOptions::default());
    assert_eq!(names(&server).await, ["add", "stable", "grow"]);
    server.disconnect();
    assert_eq!(names(&server).await, ["stable", "grow"]);
    assert_eq!(server.changed_tools(&context), ["add"]);
    let withheld = server.report(&context).await.unwrap().withheld;
    assert!(
        withheld
            .iter()
            .any(|(name, why)| name == "add" && why.contains("changed")),
        "{withheld:?}"
    );
    server.accept_changes(&context);
    assert_eq!(names(&server).await, ["add", "stable", "grow"]);
    server.disconnect();
    assert_eq!(names(&server).await, ["add", "stable", "grow"], "the same definition");
}
