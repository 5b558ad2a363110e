#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use regex::Regex;
use serde_json::json;

use super::*;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{NativeTool, ToolContext, ToolResult};

fn tool(name: &str) -> Arc<dyn Tool> {
    let made = NativeTool::new(name, "", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text(""))
    });
    Arc::new(made.unwrap())
}

fn fixed(name: &str, tools: &[&str]) -> FixedTools {
    FixedTools::new(name, tools.iter().map(|name| tool(name)).collect())
}

fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.definition().name()).collect()
}

/// A server that is connected to when its tools are first wanted, with the caller's token.
struct Server {
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl ToolSource for Server {
    fn name(&self) -> &str {
        "server"
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match context.text("token") {
            Some("secret") => Ok(vec![tool("web_search"), tool("web_fetch"), tool("draw")]),
            _ => Err(Error::new(
                ErrorKind::Denied,
                Phase::Registry,
                "the server wants a token",
            )),
        }
    }
}

fn config() -> GroupsConfig {
    GroupsConfig::parse(
        r#"
        [web]
        description = "Looks things up."
        provider = "server"
        tools = ["draw", "missing"]
        include = ["^web_"]
        permissions = ["internet_access", "cookies"]
        metadata = { version = 2 }

        [math]
        description = "Calculates."
        tools = ["add"]

        [all]
        provider = "local"
        "#,
    )
    .unwrap()
}

fn groups(asked: &Arc<AtomicUsize>) -> ToolGroups {
    ToolGroups::new()
        .with_source(fixed("local", &["add", "web_local"]))
        .with_source(Server { asked: asked.clone() })
        .with_config(config())
        .unwrap()
}

// accept: 94, accept: 95, accept: 96, accept: 98
#[tokio::test]
async fn a_role_is_what_the_configuration_says_and_what_is_missing_is_passed_over() {
    let groups = groups(&Arc::default());
    let context = ToolContext::new().with("token", "secret");
    let web = groups.resolve("web", &context).await.unwrap();
    assert_eq!(names(&web.tools), ["web_search", "web_fetch", "draw"]);
    assert_eq!(web.provider.as_deref(), Some("server"));
    assert!(web.permissions.contains(&GroupPermission::InternetAccess));
    assert!(web.permissions.contains(&GroupPermission::Other("cookies".to_owned())));
    assert_eq!(web.metadata["version"], 2);
    let several = groups.tools(["all", "math", "web"], &context).await.unwrap();
    assert_eq!(
        names(&several),
        ["add", "web_local", "web_search", "web_fetch", "draw"],
        "chained, each once"
    );
}

// accept: 94, accept: 98
#[tokio::test]
async fn a_role_whose_source_cannot_be_reached_has_no_tools_and_no_facade() {
    let groups = groups(&Arc::default());
    let nobody = ToolContext::new();
    assert!(groups.resolve("web", &nobody).await.unwrap().tools.is_empty());
    assert!(groups.facade("web", &nobody).await.unwrap().is_none());
    let math = groups.facade("math", &nobody).await.unwrap().unwrap();
    assert_eq!(names(math.tools()), ["add"]);
    let error = groups.resolve("maps", &nobody).await.err().unwrap();
    assert!(
        error.suggestion.as_ref().unwrap().contains("`all`, `math`, `web`"),
        "{error:?}"
    );
}

// accept: 99
#[tokio::test]
async fn nobody_is_connected_to_before_the_first_use_which_has_the_callers_token() {
    let asked = Arc::new(AtomicUsize::new(0));
    let groups = groups(&asked);
    let source: Arc<dyn ToolSource> = Arc::new(Server { asked: asked.clone() });
    let facade = SourceTools::lazy_facade("web", "Looks things up.", source)
        .build()
        .unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    groups
        .resolve("math", &ToolContext::new().with("token", "secret"))
        .await
        .unwrap();
    let before = asked.load(Ordering::Relaxed);
    let context = ToolContext::new().with("token", "secret");
    let result = facade.call(serde_json::Map::new(), &context).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
    assert_eq!(
        names(&result.revealed_tools.unwrap().tools),
        ["web_search", "web_fetch", "draw"]
    );
    let refused = facade
        .call(serde_json::Map::new(), &ToolContext::new())
        .await
        .err()
        .unwrap();
    assert!(refused.to_string().contains("wants a token"), "{refused}");
}

// accept: 95, accept: 96, accept: 148
#[tokio::test]
async fn groups_are_made_in_code_too() {
    let made = ToolGroup::new("web", "Mine.", vec![tool("a"), tool("b")])
        .filter_tools(|tool| tool.definition().name() != "b")
        .with_permission(GroupPermission::InternetAccess)
        .with_metadata("owner", "me");
    let groups = groups(&Arc::default()).with(made);
    let web = groups.resolve("web", &ToolContext::new()).await.unwrap();
    assert_eq!(names(&web.tools), ["a"], "in place of the configured one");
    assert_eq!(web.metadata["owner"], "me");
}

// accept: 97, accept: 98
#[tokio::test]
async fn a_shelf_gives_single_tools_and_facades() {
    let shelf = SourceTools::load(
        &fixed("server", &["db_query", "db_insert", "web_get"]),
        &ToolContext::new(),
    )
    .await
    .unwrap();
    assert!(shelf.tool_by_name("db_query").is_some());
    assert!(shelf.tool_by_name("native#db_query").is_some(), "by id too");
    assert!(shelf.tool_by_name("nowhere").is_none());
    let error = shelf.required_tool_by_name("nowhere").err().unwrap();
    assert_eq!(error.message, "`server` offers no tool `nowhere`");
    assert!(
        error
            .suggestion
            .as_ref()
            .unwrap()
            .contains("`db_query`, `db_insert`, `web_get`")
    );
    let wanted = ["web_get", "missing"].map(str::to_owned).into();
    let by_name = shelf.facade_by_name("web", "", &wanted).unwrap();
    assert_eq!(names(by_name.tools()), ["web_get"]);
    let patterns = [Regex::new("^db_").unwrap(), Regex::new("insert").unwrap()];
    let matching = shelf.facade_matching("db", "", &patterns).unwrap();
    assert_eq!(names(matching.tools()), ["db_query", "db_insert"]);
    let passing = shelf
        .facade_where("short", "", |tool| tool.definition().name().len() < 8)
        .unwrap();
    assert_eq!(names(passing.tools()), ["web_get"]);
    assert!(
        shelf.facade_where("none", "", |_| false).is_none(),
        "an empty facade is not added"
    );
}

// accept: 95
#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    let error = GroupsConfig::parse("[web]\ntool = []").err().unwrap();
    assert!(error.message.contains("line 2"), "{}", error.message);
    let pattern = GroupsConfig::parse("[web]\ninclude = ['(']").unwrap();
    let error = ToolGroups::new().with_config(pattern).err().unwrap();
    assert!(error.message.contains("`web` has a wrong pattern"), "{}", error.message);
    let provider = GroupsConfig::parse("[web]\nprovider = 'nobody'").unwrap();
    let error = ToolGroups::new()
        .with_source(fixed("local", &[]))
        .with_config(provider)
        .err()
        .unwrap();
    assert!(error.suggestion.as_ref().unwrap().contains("`local`"), "{error:?}");
}
