//! Approvals of tools that are removed before their result arrives.

use tokio::sync::oneshot;

use super::*;

/// Returns a tool that returns the customer `c-1` at once, and the customer `c-2` after a signal.
fn find_in_background(signal: oneshot::Receiver<()>) -> Arc<dyn Tool> {
    let signal = Mutex::new(Some(signal));
    tool("find", move |_, context| {
        let signal = signal.lock().unwrap().take().unwrap();
        context.background_task()?.spawn(async move {
            signal.await.ok();
            Ok(ToolResult::text("found").with_provider(customer("c-2")))
        });
        Ok(ToolResult::background("started").with_provider(customer("c-1")))
    })
}

// accept: 80, accept: 85, accept: 133
#[tokio::test]
async fn the_approval_of_a_removed_tool_applies_to_its_late_result_also_after_a_resume() {
    let set_up = |steps: Vec<Step>| {
        let (builder, model) = TestModel::playing(steps);
        let (sender, signal) = oneshot::channel();
        let builder = builder
            .tools([find_in_background(signal)])
            .decorate("find", approve_only_find());
        (builder, model, sender)
    };
    let (builder, model, sender) = set_up(vec![
        invoke("find"),
        reply("Wait."),
        invoke("customer_c2_delete"),
        reply("ok"),
    ]);
    let mut conversation = builder.build().unwrap();
    conversation.run("go").await.unwrap();
    conversation.remove_tool(&ToolId::native("find"));
    sender.send(()).unwrap();
    let history = conversation.wake().await.unwrap().unwrap().history;
    assert!(
        tool_results(&history).last().unwrap().contains(DENIED),
        "{:?}",
        tool_results(&history)
    );
    let (builder, ..) = set_up(Vec::new());
    let resumed = builder.history(history).resume(model.events()).build().unwrap();
    for method in ["customer_c1_delete", "customer_c2_delete"] {
        let ToolLookup::Found(method) = resumed.tools().look_up(method) else {
            panic!("{method} is declared")
        };
        assert!(method.tool.decorator().is_some(), "{} is guarded", method.name);
    }
}

// accept: 80
#[tokio::test]
async fn the_approval_of_a_tool_that_its_registry_removes_during_the_call_applies_to_its_result() {
    let shared_tools = SharedToolSet::new();
    shared_tools.register(find("find", 1).with_name("find"));
    let registry = shared_tools.clone();
    let change = tool("change", move |_, _| {
        assert!(registry.unregister("find"));
        Ok(ToolResult::text("changed"))
    });
    let steps = [
        call([("change", json!({})), ("find", json!({}))]),
        invoke("customer_c1_delete"),
    ];
    let results = run_steps(steps, |builder| {
        builder
            .shared_tools(&shared_tools)
            .tools([change])
            .decorate("find", approve_only_find())
    });
    let results = results.await;
    assert_eq!(results[1].lines().next(), Some("found"));
    assert!(results[2].contains(DENIED), "{results:?}");
}
