//! A server that runs as a child process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;
use toolwit_agent::{SourceTools, ToolSource};
use toolwit_core::{ErrorKind, MetaFilter, ToolContext};
use toolwit_mcp_client::{
    ClientOptions, McpServer, RevisionChoice, ServerConfig, ServerEndpoint, SettingValue, ToolFilter,
};

use crate::{PROGRAM, Progress, arguments, call, call_with, config, names, server, tool, works};

// accept: 97
#[tokio::test]
async fn tools_of_a_server_are_called_by_name() {
    let server = server("plain");
    let tools = SourceTools::load(&server, &ToolContext::new()).await.unwrap();
    assert!(tools.tool_by_name_or_id("echo").is_some() && tools.tool_by_name_or_id("none").is_none());
    let missing = tools.required_tool_by_name_or_id("none").err().unwrap();
    assert!(
        missing.suggestion.as_deref().unwrap_or_default().contains("`echo`"),
        "{missing:?}"
    );
    let sum = call(&server, "add", json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(sum.for_llm, "3\n\n{\"sum\":3}");
    assert_eq!(sum.value, Some(json!({"sum": 3})));
    let image = call(&server, "image", json!({})).await.unwrap();
    assert_eq!(image.artifacts[0].kind, "image/png");
    assert!(call(&server, "fail", json!({})).await.unwrap().is_error());
    let invalid = call(&server, "add", json!({"a": "x"})).await.unwrap_err();
    assert_eq!(invalid.report().kind, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn each_revision_is_spoken() {
    for (behaviour, choice, revision) in [
        ("plain", RevisionChoice::Newest, "2025-11-25"),
        ("plain", RevisionChoice::Handshake, "2025-11-25"),
        ("old-revision", RevisionChoice::Newest, "2025-06-18"),
        ("stateless", RevisionChoice::Newest, "2026-07-28"),
        ("stateless", RevisionChoice::Stateless, "2026-07-28"),
        ("hangs-up", RevisionChoice::Newest, "2025-11-25"),
    ] {
        let server = McpServer::new(config(behaviour).with_revision(choice), ClientOptions::default());
        let report = server.report(&ToolContext::new()).await.unwrap();
        assert_eq!(report.revision, revision, "{behaviour} {choice:?}");
        works(&server).await;
    }
    let ancient = server("ancient-revision")
        .report(&ToolContext::new())
        .await
        .unwrap_err();
    assert!(ancient.message.contains("1999-01-01"), "{ancient}");
    let legacy = McpServer::new(
        config("plain").with_revision(RevisionChoice::Stateless),
        ClientOptions::default(),
    );
    assert!(legacy.report(&ToolContext::new()).await.is_err());
}

// accept: 99
#[tokio::test]
async fn nothing_is_started_before_the_first_use() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("server");
    let missing = ServerConfig::process("test", program.to_str().unwrap()).unwrap();
    let server = McpServer::new(missing, ClientOptions::default());
    assert_eq!(server.name(), "test");
    assert!(server.cached_tools(&ToolContext::new()).is_none());
    let error = server.tools(&ToolContext::new()).await.err().unwrap();
    assert!(error.message.contains("does not exist"), "{error}");
}

#[tokio::test]
async fn a_tool_that_requires_a_task_is_called_as_a_task() {
    let server = server("tasks");
    let result = call(&server, "slow", json!({"text": "done"})).await.unwrap();
    assert_eq!(result.for_llm, "done");
    let failed = call(&server, "slow", json!({"text": "fail"})).await.unwrap();
    assert!(failed.is_error() && failed.for_llm == "fail");
    let cancelled = call(&server, "slow", json!({"text": "cancel"})).await.unwrap();
    assert!(
        cancelled.is_error() && cancelled.for_llm.contains("cancelled"),
        "{}",
        cancelled.for_llm
    );
}

#[tokio::test]
async fn an_empty_cursor_is_one_since_2026_07_28() {
    for (behaviour, choice, expected) in [
        (
            "empty-cursor-stateless",
            RevisionChoice::Stateless,
            vec!["first", "second"],
        ),
        ("empty-cursor", RevisionChoice::Newest, vec!["first"]),
    ] {
        let server = McpServer::new(config(behaviour).with_revision(choice), ClientOptions::default());
        assert_eq!(names(&server).await, expected, "{behaviour}");
    }
}

// accept: 90
#[tokio::test]
async fn context_values_reach_a_server_only_if_they_are_allowed() {
    let context = ToolContext::new()
        .with("tenant", "acme")
        .with("token", "t-12345678")
        .with("progressToken", 1);
    let received = async |meta: MetaFilter| {
        let config = config("plain")
            .with_meta(meta)
            .with_variable("KEY", SettingValue::context("token"));
        let server = McpServer::new(config, ClientOptions::default());
        let result = call_with(&server, "meta", json!({}), &context).await.unwrap();
        result.value.unwrap()["meta"].as_object().cloned().unwrap_or_default()
    };
    assert_eq!(received(MetaFilter::default()).await, Map::new());
    let tenant = json!({"tenant": "acme"}).as_object().cloned().unwrap();
    assert_eq!(
        received(MetaFilter::pass_through()).await,
        tenant,
        "a credential is never sent"
    );
    assert_eq!(received(MetaFilter::allow(["tenant", "token"])).await, tenant);
    assert_eq!(received(MetaFilter::deny(["tenant"])).await, Map::new());
    let custom = MetaFilter::custom(|values| {
        Map::from_iter([
            ("org".to_owned(), values["tenant"].clone()),
            ("t".to_owned(), values["token"].clone()),
        ])
    });
    assert_eq!(
        received(custom).await,
        json!({"org": "acme"}).as_object().cloned().unwrap()
    );
}

#[tokio::test]
async fn progress_reaches_the_user_and_a_call_can_be_cancelled() {
    let server = server("plain");
    let output = Arc::new(Progress::default());
    let context = ToolContext::new().with_output(output.clone());
    let counted = call_with(&server, "count", json!({"to": 3}), &context).await.unwrap();
    assert_eq!(counted.for_llm, "counted");
    assert_eq!(output.0.lock().unwrap().first().map(String::as_str), Some("step 1"));

    let cancel = CancellationToken::new();
    let context = ToolContext::new().with_cancel_token(cancel.clone());
    let wait = tool(&server, "wait", &context).await;
    let waiting = wait.call(Default::default(), &context);
    let (ended, ()) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(ended.unwrap_err().report().kind, ErrorKind::Cancelled);
    works(&server).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let server = McpServer::new(
        config("plain").with_timeout(Duration::from_millis(200)),
        ClientOptions::default(),
    );
    let error = call(&server, "wait", json!({})).await.unwrap_err();
    assert_eq!(error.report().kind, ErrorKind::Timeout);
    assert!(error.report().message.contains("may have taken effect"), "{error}");
    // The server reads on only after it was notified.
    works(&server).await;
}

#[tokio::test]
async fn a_server_that_ended_is_started_again() {
    let server = server("plain");
    let error = call(&server, "exit", json!({})).await.unwrap_err();
    assert_eq!(error.report().kind, ErrorKind::ToolUnavailable);
    assert!(error.report().message.contains("its process has ended"), "{error}");
    works(&server).await;
    server.disconnect();
    works(&server).await;
}

#[tokio::test]
async fn tools_that_a_call_adds_are_known_after_it() {
    let server = server("plain");
    let context = ToolContext::new();
    call(&server, "grow", json!({})).await.unwrap();
    let known = server.cached_tools(&context).unwrap();
    assert!(known.iter().any(|tool| tool.definition().name() == "grown"));
    let listed = server.tools(&context).await.unwrap();
    assert!(
        known
            .iter()
            .zip(&listed)
            .all(|(known, listed)| Arc::ptr_eq(known, listed)),
        "tools stay the same objects"
    );
}

// accept: 96
#[tokio::test]
async fn tools_are_chosen_by_patterns() {
    let filter = ToolFilter::parse(["^(echo|add|fail)$"], ["fail"]).unwrap();
    let server = McpServer::new(config("plain").with_tools(filter), ClientOptions::default());
    assert_eq!(names(&server).await, ["echo", "add"]);
    let ids: Vec<_> = server.tools(&ToolContext::new()).await.unwrap();
    assert_eq!(ids[0].definition().id.as_str(), "mcp:test#echo");
}

#[tokio::test]
async fn resources_and_prompts_can_be_read_where_asked() {
    assert!(!names(&server("plain")).await.contains(&"test_read_resource".to_owned()));
    let server = McpServer::new(
        config("plain").with_resource_tools().with_prompt_tools(),
        ClientOptions::default(),
    );
    let listed = call(&server, "test_list_resources", json!({}))
        .await
        .unwrap()
        .value
        .unwrap();
    assert_eq!(listed["resources"][0]["uri"], "test://greeting");
    let cursor = json!({"cursor": listed["next_cursor"]});
    let second = call(&server, "test_list_resources", cursor).await.unwrap();
    assert_eq!(
        second.value.unwrap(),
        json!({"resources": [{"uri": "test://farewell", "name": "farewell", "description": "", "mime_type": null}], "templates": []})
    );
    let read = call(&server, "test_read_resource", json!({"uri": "test://greeting"}))
        .await
        .unwrap();
    assert_eq!(read.for_llm, "hello");
    let missing = call(&server, "test_read_resource", json!({"uri": "test://none"}))
        .await
        .unwrap();
    assert!(missing.is_error());
    let prompts = call(&server, "test_list_prompts", json!({}))
        .await
        .unwrap()
        .value
        .unwrap();
    assert_eq!(prompts["prompts"][0]["name"], "greet");
    let prompt = call(
        &server,
        "test_get_prompt",
        json!({"name": "greet", "arguments": {"name": "Ada"}}),
    )
    .await
    .unwrap();
    assert_eq!(prompt.for_llm, "Greet Ada.");
}

#[tokio::test]
async fn an_error_of_a_resource_or_prompt_tool_has_the_name_of_the_tool() {
    let server = McpServer::new(
        config("plain").with_resource_tools().with_prompt_tools(),
        ClientOptions::default(),
    );
    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = ToolContext::new().with_cancel_token(cancel);
    for (name, value) in [
        ("test_list_resources", json!({})),
        ("test_read_resource", json!({"uri": "test://greeting"})),
        ("test_list_prompts", json!({})),
        ("test_get_prompt", json!({"name": "greet"})),
    ] {
        let tool = tool(&server, name, &ToolContext::new()).await;
        let error = tool.call(arguments(&value), &cancelled).await.unwrap_err();
        let error = error.report();
        assert_eq!(error.kind, ErrorKind::Cancelled, "{error}");
        assert_eq!(error.tool.as_deref(), Some(name));
    }
}

#[tokio::test]
async fn a_program_is_looked_up_in_the_path_of_the_server() {
    let config = ServerConfig::process("test", "mcp-test-server")
        .unwrap()
        .with_arguments(["plain"]);
    let directory = std::path::Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let server = McpServer::new(
        config.clone().with_variable("PATH", directory),
        ClientOptions::default(),
    );
    works(&server).await;
    let ServerEndpoint::Process(_) = &config.endpoint else {
        panic!("it is a process");
    };
    let error = McpServer::new(config, ClientOptions::default())
        .tools(&ToolContext::new())
        .await
        .err()
        .unwrap();
    assert!(error.message.contains("`mcp-test-server` does not exist"), "{error}");
}
