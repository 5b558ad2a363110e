#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use regex::Regex;
use serde_json::json;

use super::*;
use crate::tests::log::RecordedLog;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{NativeTool, ToolContext, ToolResult};

fn tool(name: &str) -> Arc<dyn Tool> {
    let tool = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text(""))
    });
    Arc::new(tool.unwrap())
}

fn fixed_tools(name: &str, tools: &[&str]) -> FixedTools {
    FixedTools::new(name, tools.iter().map(|name| tool(name)).collect())
}

fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.definition().name()).collect()
}

/// A server that requires the caller's token.
struct Server {
    queries: Arc<AtomicUsize>,
}

#[async_trait]
impl ToolSource for Server {
    fn name(&self) -> &str {
        "server"
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        match context.text("token") {
            Some("secret") => Ok(vec![tool("web_search"), tool("web_fetch"), tool("draw")]),
            _ => Err(Error::new(
                ErrorKind::Denied,
                Phase::Registry,
                "the server requires a token",
            )),
        }
    }
}

fn config() -> GroupsConfig {
    GroupsConfig::parse(
        r#"
        [groups.web]
        description = "Looks things up."
        provider = "server"
        tools = ["draw", "missing"]
        include = ["^web_"]
        permissions = ["internet_access", "cookies"]
        metadata = { version = 2 }

        [groups.math]
        description = "Calculates."
        tools = ["add"]

        [groups.all]
        provider = "local"
        "#,
    )
    .unwrap()
}

fn groups(queries: &Arc<AtomicUsize>) -> ToolGroups {
    ToolGroups::new()
        .with_source(fixed_tools("local", &["add", "web_local"]))
        .with_source(Server {
            queries: queries.clone(),
        })
        .with_config(config())
        .unwrap()
}

// accept: 94, accept: 95, accept: 96, accept: 98
#[tokio::test]
async fn a_role_resolves_to_its_configured_tools_and_missing_tools_are_skipped() {
    let groups = groups(&Arc::default());
    let context = ToolContext::new().with("token", "secret");
    let web = groups.resolve("web", &context).await.unwrap();
    assert_eq!(names(&web.tools), ["web_search", "web_fetch", "draw"]);
    assert_eq!(web.provider.as_deref(), Some("server"));
    assert!(web.permissions.contains(&GroupPermission::InternetAccess));
    assert!(web.permissions.contains(&GroupPermission::Other("cookies".to_owned())));
    assert_eq!(web.metadata["version"], 2);
    let tools_of_roles = groups.tools(["all", "math", "web"], &context).await.unwrap();
    assert_eq!(
        names(&tools_of_roles),
        ["add", "web_local", "web_search", "web_fetch", "draw"],
        "the tools are in the order of the roles, each once"
    );
}

// accept: 94, accept: 98
#[tokio::test]
async fn an_unreachable_source_affects_only_its_role_and_an_unknown_role_is_an_error() {
    let groups = groups(&Arc::default());
    let context_without_token = ToolContext::new();
    assert!(
        groups
            .resolve("web", &context_without_token)
            .await
            .unwrap()
            .tools
            .is_empty()
    );
    assert!(groups.facade("web", &context_without_token).await.unwrap().is_none());
    let math = groups.facade("math", &context_without_token).await.unwrap().unwrap();
    assert_eq!(names(math.tools()), ["add"]);
    let error = groups.resolve("maps", &context_without_token).await.err().unwrap();
    assert!(
        error.suggestion.as_ref().unwrap().contains("`all`, `math`, `web`"),
        "{error:?}"
    );
}

// accept: 99
#[tokio::test]
async fn a_source_is_queried_only_on_use_and_with_the_callers_token() {
    let queries = Arc::new(AtomicUsize::new(0));
    let groups = groups(&queries);
    let source: Arc<dyn ToolSource> = Arc::new(Server {
        queries: queries.clone(),
    });
    let facade = SourceTools::lazy_facade("web", "Looks things up.", source)
        .build()
        .unwrap();
    assert_eq!(queries.load(Ordering::Relaxed), 0);
    groups
        .resolve("math", &ToolContext::new().with("token", "secret"))
        .await
        .unwrap();
    let queries_before = queries.load(Ordering::Relaxed);
    let context = ToolContext::new().with("token", "secret");
    let result = facade.call(serde_json::Map::new(), &context).await.unwrap();
    assert_eq!(queries.load(Ordering::Relaxed), queries_before + 1);
    assert_eq!(
        names(&result.revealed_tools.unwrap().tools),
        ["web_search", "web_fetch", "draw"]
    );
    let error = facade
        .call(serde_json::Map::new(), &ToolContext::new())
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("requires a token"), "{error}");
}

// accept: 95, accept: 96, accept: 148
#[tokio::test]
async fn a_group_built_in_code_replaces_the_configured_one() {
    let group = ToolGroup::new("web", "Mine.", vec![tool("a"), tool("b")])
        .with_filter(|tool| tool.definition().name() != "b")
        .with_permission(GroupPermission::InternetAccess)
        .with_metadata("owner", "me");
    let groups = groups(&Arc::default()).with_group(group);
    let web = groups.resolve("web", &ToolContext::new()).await.unwrap();
    assert_eq!(names(&web.tools), ["a"], "it replaces the configured group");
    assert_eq!(web.metadata["owner"], "me");
}

// accept: 97, accept: 98
#[tokio::test]
async fn source_tools_return_single_tools_and_facades() {
    let tools = SourceTools::load(
        &fixed_tools("server", &["db_query", "db_insert", "web_get"]),
        &ToolContext::new(),
    )
    .await
    .unwrap();
    assert!(tools.tool_by_name_or_id("db_query").is_some());
    assert!(
        tools.tool_by_name_or_id("native#db_query").is_some(),
        "a tool is found by its id too"
    );
    assert!(tools.tool_by_name_or_id("nowhere").is_none());
    let error = tools.required_tool_by_name_or_id("nowhere").err().unwrap();
    assert_eq!(error.message, "`server` does not have a tool `nowhere`");
    assert!(
        error
            .suggestion
            .as_ref()
            .unwrap()
            .contains("`db_query`, `db_insert`, `web_get`")
    );
    let requested_names = ["web_get", "missing"].map(str::to_owned).into();
    let named_facade = tools.facade_with_tools("web", "", &requested_names).unwrap();
    assert_eq!(names(named_facade.tools()), ["web_get"]);
    let patterns = [Regex::new("^db_").unwrap(), Regex::new("insert").unwrap()];
    let pattern_facade = tools.facade_matching("db", "", &patterns).unwrap();
    assert_eq!(names(pattern_facade.tools()), ["db_query", "db_insert"]);
    let short_name_facade = tools
        .facade_where("short", "", |tool| tool.definition().name().len() < 8)
        .unwrap();
    assert_eq!(names(short_name_facade.tools()), ["web_get"]);
    assert!(
        tools.facade_where("none", "", |_| false).is_none(),
        "there is no facade without tools"
    );
}

// accept: 95
#[test]
fn an_invalid_configuration_is_refused() {
    let error = GroupsConfig::parse("[groups.web]\ntool = []").err().unwrap();
    assert!(error.message.contains("line 2"), "{}", error.message);
    let config_with_invalid_pattern = GroupsConfig::parse("[groups.web]\ninclude = ['(']").unwrap();
    let error = ToolGroups::new()
        .with_config(config_with_invalid_pattern)
        .err()
        .unwrap();
    assert!(
        error.message.contains("`web` has an invalid pattern"),
        "{}",
        error.message
    );
    let config_with_unknown_provider = GroupsConfig::parse("[groups.web]\nprovider = 'nobody'").unwrap();
    let error = ToolGroups::new()
        .with_source(fixed_tools("local", &[]))
        .with_config(config_with_unknown_provider)
        .err()
        .unwrap();
    assert!(error.suggestion.as_ref().unwrap().contains("`local`"), "{error:?}");
}

// accept: 99, accept: 94
#[tokio::test]
async fn a_role_without_a_provider_contacts_only_sources_that_can_have_its_tools() {
    let queries = Arc::new(AtomicUsize::new(0));
    let groups = groups(&queries);
    let context = ToolContext::new().with("token", "secret");
    let math = groups.resolve("math", &context).await.unwrap();
    assert_eq!(names(&math.tools), ["add"]);
    assert_eq!(
        queries.load(Ordering::Relaxed),
        0,
        "the local source has all of its tools"
    );
    let config =
        GroupsConfig::parse("[groups.mixed]\ntools = ['draw', 'add']\n[groups.pattern]\ninclude = ['^web_']").unwrap();
    let groups = groups.with_config(config).unwrap();
    let mixed = groups.resolve("mixed", &context).await.unwrap();
    assert_eq!(names(&mixed.tools), ["add", "draw"], "the server may have `draw`");
    let pattern = groups.resolve("pattern", &context).await.unwrap();
    assert_eq!(names(&pattern.tools), ["web_local", "web_search", "web_fetch"]);
    assert_eq!(queries.load(Ordering::Relaxed), 2);
}

// accept: 99
#[tokio::test]
async fn the_log_reports_when_a_source_is_contacted() {
    let log = RecordedLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let groups = groups(&Arc::default());
    let lines = || log.lines().join("\n");
    // In a line of the log, the message `a source of tools is contacted` is followed by its field `source`.
    assert!(lines().contains("is not contacted before its first use"), "{}", lines());
    assert!(!lines().contains("is contacted source"), "{}", lines());
    // `tracing` caches whether a subscriber observes an event. Another test may have filled this cache before.
    tracing::callsite::rebuild_interest_cache();
    groups
        .resolve("web", &ToolContext::new().with("token", "secret"))
        .await
        .unwrap();
    assert!(lines().contains("is contacted source"), "{}", lines());
    assert!(!lines().contains("secret"), "the token is not logged");
}
