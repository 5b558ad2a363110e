//! Tools of plugins by role.

use toolwit::agent::GroupsConfig;
use toolwit::model::{Expectation, ScriptedModel, ScriptedTurn};
use toolwit::{ErrorKind, Toolwit};

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
fn model<const N: usize>(turns: [(&[&str], &[&str]); N]) -> ScriptedModel {
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
    let model = model([
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
    let model = model([(&["add"], &["version"])]);
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
