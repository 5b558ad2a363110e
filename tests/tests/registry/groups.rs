//! Tools of plugins by role.

use std::sync::Arc;

use toolwit::agent::{GroupsConfig, ToolGroup};
use toolwit::model::{Expectation, ScriptedModel, ScriptedTurn};
use toolwit::tool::ToolResult;
use toolwit::{ErrorKind, NativeTool, Tool, Toolwit};

use crate::place::{Place, adder};

const GROUPS: &str = "
[groups.math]
tools = ['add']

[groups.meta]
provider = 'plugins'
include = ['^version$']
";

async fn host(place: &Place) -> Toolwit {
    place.put("adder", &adder(1));
    let groups = GroupsConfig::parse(GROUPS).unwrap();
    place.host().groups(groups).build().await.unwrap()
}

/// Returns a model that answers once for each pair of declared and absent tools, which it checks.
fn checking_model<const N: usize>(turns: [(&[&str], &[&str]); N]) -> ScriptedModel {
    turns
        .into_iter()
        .fold(ScriptedModel::new(), |model, (declared, absent)| {
            let mut expectation = Expectation::new();
            if !declared.is_empty() {
                expectation = expectation.tools(declared.iter().copied());
            }
            if !absent.is_empty() {
                expectation = expectation.no_tools(absent.iter().copied());
            }
            model.turn(ScriptedTurn::answer("ok").with_expectation(expectation))
        })
}

// accept: 94, accept: 96
#[tokio::test]
async fn roles_select_the_tools_of_plugins_per_conversation_and_per_turn() {
    let place = Place::new();
    let host = host(&place).await;
    let model = checking_model([
        (&["add"], &["version"]),
        (&["add", "version"], &[]),
        (&["add"], &["version"]),
    ]);
    let mut conversation = host.conversation_for(["math"]).model(model).build().unwrap();
    conversation.run("one").await.unwrap();
    conversation.turn("two").role("meta").run().await.unwrap();
    conversation.run("three").await.unwrap();
    let unknown = host
        .conversation_for(["mail"])
        .model(ScriptedModel::new())
        .build()
        .err()
        .unwrap();
    assert_eq!(unknown.kind, ErrorKind::Configuration);
    assert!(
        unknown.suggestion.as_ref().unwrap().contains("`math`, `meta`"),
        "{unknown:?}"
    );
}

// accept: 94
#[tokio::test]
async fn a_role_brings_no_tool_that_the_conversation_may_not_use() {
    let place = Place::new();
    let host = host(&place).await;
    let model = checking_model([(&["add"], &["version"])]);
    let among = host.conversation_among(|id| !id.ends_with("#version"));
    let mut conversation = among.model(model).build().unwrap();
    conversation.turn("one").role("meta").run().await.unwrap();
    assert!(conversation.tools().iter().all(|tool| tool.name.as_str() != "version"));
}

// accept: 95
#[tokio::test]
async fn groups_of_a_file_are_checked_when_the_host_is_built() {
    let place = Place::new();
    place.put("adder", &adder(1));
    let file = place.path().join("toolwit.toml");
    std::fs::write(&file, "[groups.web]\nprovider = 'nobody'\n").unwrap();
    let refused = place.host().groups_file(&file).build().await.err().unwrap();
    assert!(
        refused.suggestion.as_ref().unwrap().contains("`plugins`"),
        "{refused:?}"
    );
    let missing = place
        .host()
        .groups_file(place.path().join("none.toml"))
        .build()
        .await
        .err()
        .unwrap();
    assert!(missing.message.contains("none.toml"), "{missing}");
    std::fs::write(&file, format!("[build]\ncommand = ['make']\n{GROUPS}")).unwrap();
    let host = place.host().groups_file(&file).build().await.unwrap();
    assert!(
        host.conversation_for(["math"])
            .model(ScriptedModel::new())
            .build()
            .is_ok()
    );
}

// accept: 91, accept: 94
#[tokio::test]
async fn a_role_follows_the_packages_of_its_tools() {
    let place = Place::new();
    let host = host(&place).await;
    let call = |model: ScriptedModel, tool| model.call(tool, serde_json::json!({})).answer("{{result}}");
    let model = ["version", "version", "other_version"]
        .into_iter()
        .fold(ScriptedModel::new(), call)
        .answer("done");
    let builder = host.conversation_for(["meta"]).model(model);
    let mut conversation = builder.build().unwrap();
    assert_eq!(conversation.run("Which version?").await.unwrap().text(), "1");
    place.put("adder", &adder(2));
    host.live_registry().refresh().await.unwrap();
    assert_eq!(conversation.run("And now?").await.unwrap().text(), "2");
    place.put("other", &adder(3));
    host.live_registry().refresh().await.unwrap();
    assert_eq!(conversation.run("And the other one?").await.unwrap().text(), "3");
    std::fs::remove_file(place.path().join("adder.wasm")).unwrap();
    host.live_registry().refresh().await.unwrap();
    conversation.run("Goodbye").await.unwrap();
    let names: Vec<_> = conversation.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["other_version"]);
}

// accept: 95
#[tokio::test]
async fn a_group_built_in_code_stands_beside_those_of_plugins() {
    let place = Place::new();
    place.put("adder", &adder(1));
    let schema = serde_json::json!({"type": "object", "properties": {}});
    let note = NativeTool::new("note", "Stores a note.", schema, |_, _| async {
        Ok(ToolResult::text("stored"))
    });
    let note: Arc<dyn Tool> = Arc::new(note.unwrap());
    let mut group = ToolGroup::new("notes", "Notes", vec![note]);
    group.metadata.insert("owner".to_owned(), "ada".into());
    let groups = GroupsConfig::parse(GROUPS).unwrap();
    let host = place.host().groups(groups).group(group).build().await.unwrap();
    let turns = checking_model([(&["add", "note"], &["version"])]);
    let mut conversation = host.conversation_for(["math", "notes"]).model(turns).build().unwrap();
    conversation.run("one").await.unwrap();
    // The rule of a conversation applies to it as well.
    let among = host.conversation_among(|id| !id.ends_with("note"));
    let mut conversation = among.model(checking_model([(&["add"], &["note"])])).build().unwrap();
    conversation.turn("one").role("notes").run().await.unwrap();
}
