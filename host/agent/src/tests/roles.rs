//! Roles, which select groups of tools for conversations, turns and agents.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use toolwit_core::{Error, ErrorKind, Phase};

/// A tool source that requires a token and counts its queries.
#[derive(Clone, Default)]
struct TokenSource {
    query_count: Arc<AtomicUsize>,
}

impl TokenSource {
    fn query_count(&self) -> usize {
        self.query_count.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ToolSource for TokenSource {
    fn name(&self) -> &str {
        "server"
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.query_count.fetch_add(1, Ordering::Relaxed);
        match context.text("token") {
            Some("secret") => Ok(vec![echo("fetch"), echo("route")]),
            _ => Err(Error::new(
                ErrorKind::Denied,
                Phase::Registry,
                "the server requires a token",
            )),
        }
    }
}

fn groups(server: &TokenSource) -> ToolGroups {
    let config =
        "[groups.web]\nprovider = 'server'\ntools = ['fetch']\n[groups.maps]\nprovider = 'server'\ntools = ['route']";
    ToolGroups::new()
        .with_source(server.clone())
        .with_config(GroupsConfig::parse(config).unwrap())
        .unwrap()
}

fn context(token: &str) -> ToolContext {
    ToolContext::new().with("token", token)
}

// accept: 94, accept: 99
#[tokio::test]
async fn roles_are_resolved_per_conversation_and_per_turn_and_each_source_is_queried_once() {
    let server = TokenSource::default();
    let (builder, model) =
        TestModel::playing([reply("one"), call([("route", json!({}))]), reply("two"), reply("three")]);
    let builder = builder.groups(groups(&server)).role("web").context(context("secret"));
    let mut conversation = builder.build().unwrap();
    assert_eq!(server.query_count(), 0, "no source is queried before the first turn");
    conversation.run("one").await.unwrap();
    assert_eq!(model.request(0).names, ["fetch"]);
    let outcome = conversation.turn("two").role("maps").run().await.unwrap();
    assert_eq!(model.request(1).names, ["fetch", "route"]);
    assert_eq!(tool_results(&outcome.history), ["route"]);
    conversation.run("three").await.unwrap();
    assert_eq!(
        model.request(3).names,
        ["fetch"],
        "the role of a turn ends with the turn"
    );
    assert_eq!(server.query_count(), 1, "the tools of a source are cached");
}

// accept: 94
#[tokio::test]
async fn the_error_for_an_unknown_role_lists_the_known_roles() {
    let server = TokenSource::default();
    let (builder, _) = TestModel::playing([]);
    let error = builder.groups(groups(&server)).role("mail").build().err().unwrap();
    assert!(
        error.suggestion.as_ref().unwrap().contains("`maps`, `web`"),
        "{error:?}"
    );
    let (builder, _) = TestModel::playing([]);
    let mut conversation = builder.groups(groups(&server)).build().unwrap();
    let error = conversation.turn("go").role("mail").run().await.unwrap_err();
    assert!(matches!(&error.failure, RunFailure::Tool(error) if error.kind == ErrorKind::Configuration));
    assert!(conversation.history().is_empty(), "the turn did not begin");
    assert_eq!(server.query_count(), 0);
}

// accept: 98, accept: 99
#[tokio::test]
async fn a_refused_query_is_repeated_and_tools_are_not_cached_across_conversations() {
    let server = TokenSource::default();
    let (builder, model) = TestModel::playing([reply("one"), reply("two")]);
    let mut conversation = builder.groups(groups(&server)).role("web").build().unwrap();
    conversation.run("one").await.unwrap();
    assert!(model.request(0).names.is_empty());
    conversation.turn("two").context(context("secret")).run().await.unwrap();
    assert_eq!(model.request(1).names, ["fetch"]);
    let (builder, other_model) = TestModel::playing([reply("one")]);
    let builder = builder.groups(groups(&server)).role("web").context(context("wrong"));
    builder.run("one").await.unwrap();
    assert!(
        other_model.request(0).names.is_empty(),
        "tools are not cached across conversations"
    );
}

// accept: 94
#[tokio::test]
async fn an_agent_resolves_a_role_from_the_groups_of_its_caller() {
    let server = TokenSource::default();
    let (_, inner) = TestModel::playing([call([("fetch", json!({}))]), reply("fetched")]);
    let agent = AgenticTool::new("agent", "Works.")
        .with_model(inner.clone())
        .with_role("web");
    let (builder, _) = TestModel::playing([call([("agent", json!({"task": "x"}))]), reply("Done.")]);
    let builder = builder.groups(groups(&server)).tool(agent).context(context("secret"));
    let outcome = builder.run("go").await.unwrap();
    assert_eq!(tool_results(&outcome.history), ["fetched"]);
    assert_eq!(inner.request(0).names, ["fetch"]);
    assert_eq!(server.query_count(), 1);
}
