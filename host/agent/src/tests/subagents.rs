//! Subagents: agents that a model calls as tools.

use schemars::JsonSchema;
use serde::Deserialize;

use super::*;
use toolwit_core::ErrorKind;
use toolwit_core::{Artifact, Blackboard, BlackboardSharing, MemoryBlackboard};

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct WorksToFind {
    /// The composers of the works.
    composers: Vec<String>,
    max: Option<u8>,
}

/// An agent without a model. It counts the objects on the blackboard and adds two objects.
#[derive(Default)]
struct Finder;

#[async_trait]
impl Agent for Finder {
    fn name(&self) -> &str {
        "finder"
    }

    fn description(&self) -> &str {
        "Finds performances."
    }

    async fn run(&self, task: Value, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let board = context.blackboard()?;
        let entry_count = board.entries().len();
        board
            .put(Artifact::new("Performance", task["composers"][0].clone()))
            .map_err(ToolError::Model)?;
        board
            .put(Artifact::new("Note", json!("hm")))
            .map_err(ToolError::Model)?;
        Ok(ToolResult::value(json!({ "entries": entry_count })))
    }
}

fn arguments(value: Value) -> Arguments {
    value.as_object().unwrap().clone()
}

fn blackboard() -> (Arc<dyn Blackboard>, ToolContext) {
    let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    board.put(Artifact::new("Venue", json!("hall"))).unwrap();
    let context = ToolContext::new().with_blackboard(board.clone());
    (board, context)
}

fn kinds(board: &dyn Blackboard) -> Vec<String> {
    board.entries().iter().map(|entry| entry.kind().to_owned()).collect()
}

// accept: 72, accept: 142
#[tokio::test]
async fn a_subagent_works_on_its_own_blackboard_and_shares_its_objects() {
    let agents = Agents::new().with_agent(Finder);
    let by_name = Subagent::by_name(&agents, "finder")
        .unwrap()
        .consuming::<WorksToFind>()
        .unwrap();
    let by_type = Subagent::of_type::<Finder>().consuming::<WorksToFind>().unwrap();
    let by_instance = Subagent::of(Finder).consuming::<WorksToFind>().unwrap();
    for subagent in [by_name, by_type, by_instance] {
        let definition = subagent.definition();
        assert_eq!(
            (definition.name(), definition.description.as_str()),
            ("finder", "Finds performances.")
        );
        assert_eq!(definition.input_schema["required"], json!(["composers"]));
        let (board, context) = blackboard();
        let result = subagent
            .call(arguments(json!({"composers": ["Bach"]})), &context)
            .await
            .unwrap();
        assert_eq!(
            result.artifacts,
            [Artifact::new("finder", json!({"entries": 2}))],
            "the blackboard of the subagent has the venue and the task"
        );
        assert_eq!(kinds(&*board), ["Venue", "Performance", "Note"]);
    }
}

// accept: 72
#[tokio::test]
async fn only_objects_of_the_shared_kinds_are_shared_and_an_invalid_task_is_refused() {
    let subagent = Subagent::of(Finder)
        .consuming::<WorksToFind>()
        .unwrap()
        .with_sharing(BlackboardSharing::Kinds(vec!["Performance".to_owned()]));
    let (board, context) = blackboard();
    subagent
        .call(arguments(json!({"composers": ["Bach"]})), &context)
        .await
        .unwrap();
    assert_eq!(kinds(&*board), ["Venue", "Performance"]);
    let error = subagent
        .call(arguments(json!({"composers": "Bach"})), &context)
        .await
        .unwrap_err();
    assert_eq!(error.report().kind, ErrorKind::InvalidArguments);
}

// accept: 142
#[test]
fn the_error_for_an_unknown_agent_lists_the_known_names() {
    let agents = Agents::new()
        .with_agent(Finder)
        .with_agent(AgenticTool::new("assembler", "Assembles."));
    let error = Subagent::by_name(&agents, "planner").err().unwrap();
    assert_eq!(
        error.suggestion.as_deref(),
        Some("the agents are `assembler`, `finder`")
    );
    assert!(Subagent::by_name(&Agents::new(), "planner").is_err());
}

// accept: 72, accept: 12
#[tokio::test]
async fn the_answer_of_an_agentic_tool_as_subagent_is_an_artifact() {
    let (_, agent_model) = TestModel::playing([reply(r#"{"works": 3}"#)]);
    let agent = AgenticTool::new("assembler", "Assembles.").with_model(agent_model.clone());
    let subagent = Subagent::of(agent).consuming::<WorksToFind>().unwrap();
    let (builder, _) = TestModel::playing([call([("assembler", json!({"composers": ["Bach"]}))]), reply("Done.")]);
    let outcome = builder.tool(subagent).build().unwrap().run("go").await.unwrap();
    assert_eq!(outcome.artifacts, [Artifact::new("assembler", json!({"works": 3}))]);
    assert_eq!(
        agent_model.request(0).messages[1].content(),
        r#"{"composers":["Bach"]}"#
    );
}
