//! Approvals of tools that enter a conversation in different ways.

use super::*;

// accept: 27, accept: 80
#[tokio::test]
async fn an_approval_belongs_to_a_tool_whatever_its_way_in() {
    let guarded = |builder: ConversationBuilder| builder.decorate("native#erase", deny_all());
    let initial = run_steps([invoke("erase")], |builder| guarded(builder).tools([erase()])).await;
    assert!(initial[0].contains(DENIED), "{}", initial[0]);
    let folded = run_steps([open("db"), invoke("query"), invoke("erase")], |b| {
        guarded(b).tool(database())
    })
    .await;
    assert_eq!(folded[1], "query", "the other tools of the facade are not guarded");
    assert!(
        folded[2].contains(DENIED) && folded[2].contains("native#db/erase"),
        "{}",
        folded[2]
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
        "the guard of a tool that is replaced"
    );
    let unguarded = run_steps([invoke("erase")], |builder| builder.tools([erase()])).await;
    assert_eq!(unguarded[0], "erase");
}

// accept: 80, accept: 133
#[tokio::test]
async fn an_approval_stays_on_after_a_resume_and_on_a_tool_that_the_application_replaces() {
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
    let (builder, model) = set_up(vec![open("db"), invoke("find"), reply("ok")]);
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
        panic!("the method is declared")
    };
    assert!(
        method.tool.decorator().is_some(),
        "the approval of `find` stays on the method"
    );
    resumed.add_tool(erase());
    let outcome = resumed.run("again").await.unwrap();
    assert!(tool_results(&outcome.history).last().unwrap().contains(DENIED));
}
