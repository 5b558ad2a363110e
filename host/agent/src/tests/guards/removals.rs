//! Tools that the application removed from a conversation.

use super::*;

// accept: 23
#[tokio::test]
async fn a_tool_that_the_application_removed_stays_removed_until_the_application_adds_it() {
    let set_up = |steps: Vec<Step>| {
        let (builder, model) = TestModel::playing(steps);
        (
            builder
                .tool(database())
                .tools([echo("prepare")])
                .strategy(EraseInjection),
            model,
        )
    };
    let turn_steps = || [invoke("prepare"), invoke("db"), invoke("erase"), reply("ok")];
    let (builder, model) = set_up(turn_steps().into_iter().chain(turn_steps()).collect());
    let mut conversation = builder.build().unwrap();
    conversation.run("one").await.unwrap();
    assert_eq!(
        conversation.remove_tool(&ToolId::native("erase")).len(),
        2,
        "the `erase` of the facade and the `erase` of the strategy"
    );
    let outcome = conversation.run("two").await.unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        !results[4].contains("erase") && results[4].contains("query"),
        "{}",
        results[4]
    );
    assert!(results[5].contains("has been removed"), "{}", results[5]);
    assert!(!model.events_named("tool_withheld").is_empty());
    let (builder, _) = set_up(turn_steps().into_iter().chain([invoke("erase"), reply("ok")]).collect());
    let mut resumed = builder.history(outcome.history).resume(model.events()).build().unwrap();
    let outcome = resumed.run("three").await.unwrap();
    assert!(
        tool_results(&outcome.history)
            .last()
            .unwrap()
            .contains("has been removed")
    );
    resumed.add_tool(erase());
    let outcome = resumed.run("four").await.unwrap();
    assert_eq!(*tool_results(&outcome.history).last().unwrap(), "erase");
}

// accept: 23, accept: 94
#[tokio::test]
async fn a_role_does_not_add_a_tool_that_the_application_removed_and_its_tools_are_guarded() {
    let groups = ToolGroups::new().with_group(ToolGroup::new("web", "", vec![echo("fetch"), erase()]));
    let (builder, model) = TestModel::playing([reply("one"), invoke("erase"), reply("two")]);
    let erase_of_role = ToolSelector::later("native#erase");
    let mut conversation = builder
        .groups(groups)
        .decorate(erase_of_role, deny_all())
        .build()
        .unwrap();
    conversation.turn("1").role("web").run().await.unwrap();
    conversation.remove_tool(&ToolId::native("fetch"));
    let outcome = conversation.turn("2").role("web").run().await.unwrap();
    assert_eq!(model.request(0).names, ["fetch", "erase"]);
    assert_eq!(model.request(1).names, ["erase"]);
    assert!(tool_results(&outcome.history)[0].contains(DENIED));
}
