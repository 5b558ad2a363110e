//! Approvals of tools that are added to a conversation in different ways.

use super::*;

// accept: 27, accept: 80
#[tokio::test]
async fn an_approval_applies_to_a_tool_however_it_is_added() {
    let guarded = |builder: ConversationBuilder| builder.decorate("native#erase", deny_all());
    let initial = run_steps([invoke("erase")], |builder| guarded(builder).tools([erase()])).await;
    assert!(initial[0].contains(DENIED), "{}", initial[0]);
    let in_facade = run_steps([invoke("db"), invoke("query"), invoke("erase")], |builder| {
        guarded(builder).tool(database())
    })
    .await;
    assert_eq!(in_facade[1], "query", "the other tools of the facade are not guarded");
    assert!(
        in_facade[2].contains(DENIED) && in_facade[2].contains("native#db/erase"),
        "{}",
        in_facade[2]
    );
    let injected = run_steps(
        [invoke("prepare"), invoke("erase"), invoke("prepare"), invoke("erase")],
        |builder| guarded(builder).tools([echo("prepare")]).strategy(EraseInjection),
    );
    let injected = injected.await;
    assert!(
        injected[1].contains(DENIED) && injected[3].contains(DENIED),
        "{injected:?}"
    );
    let renamed = run_steps([invoke("wipe")], |builder| {
        guarded(builder).tools([Arc::new(erase().with_name("wipe")) as _])
    });
    assert!(renamed.await[0].contains(DENIED));
    let guarded_erase = Arc::new(erase().with_decorator(deny_all())) as Arc<dyn Tool>;
    let replaced = run_steps([invoke("prepare"), invoke("erase")], |builder| {
        builder.tools([echo("prepare"), guarded_erase]).strategy(EraseInjection)
    });
    assert!(
        replaced.await[1].contains(DENIED),
        "the new tool keeps the guard of the tool that it replaces"
    );
    let unguarded = run_steps([invoke("erase")], |builder| builder.tools([erase()])).await;
    assert_eq!(unguarded[0], "erase");
}

// accept: 80, accept: 133
#[tokio::test]
async fn an_approval_applies_after_a_resume_and_after_the_application_replaces_the_tool() {
    let set_up = |steps: Vec<Step>| {
        let (builder, model) = TestModel::playing(steps);
        let builder = builder
            .tool(database())
            .tools([find("find", 1)])
            .decorate("native#erase", deny_all());
        (
            builder.decorate("find", ApprovalGate::new(|_: &ApprovalRequest| Approval::Approved)),
            model,
        )
    };
    let (builder, model) = set_up(vec![invoke("db"), invoke("find"), reply("ok")]);
    let history = builder.run("go").await.unwrap().history;
    let (builder, _) = set_up(vec![invoke("erase"), reply("ok"), invoke("erase"), reply("ok")]);
    let mut resumed = builder.history(history).resume(model.events()).build().unwrap();
    let outcome = resumed.run("again").await.unwrap();
    assert!(
        tool_results(&outcome.history).last().unwrap().contains(DENIED),
        "{:?}",
        tool_results(&outcome.history)
    );
    let ToolLookup::Found(method) = resumed.tools().look_up("customer_c1_delete") else {
        panic!("the method is not found")
    };
    assert!(
        method.tool.decorator().is_some(),
        "the method still inherits the approval of `find`"
    );
    resumed.add_tool(erase());
    let outcome = resumed.run("again").await.unwrap();
    assert!(tool_results(&outcome.history).last().unwrap().contains(DENIED));
}
