//! Approvals of tools that are removed before they return a result.

use tokio::sync::oneshot;

use super::*;

/// Returns a tool that returns the customer `c-1` at once. After `finish` receives a message, a background task returns the
/// customer `c-2`.
fn find_in_background(finish: oneshot::Receiver<()>) -> Arc<dyn Tool> {
    let finish = Mutex::new(Some(finish));
    tool("find", move |_, context| {
        let finish = finish.lock().unwrap().take().unwrap();
        context.background_task()?.spawn(async move {
            finish.await.ok();
            Ok(ToolResult::text("found").with_provider(customer("c-2")))
        });
        Ok(ToolResult::background("started").with_provider(customer("c-1")))
    })
}

// accept: 80, accept: 85, accept: 133
#[tokio::test]
async fn the_approval_of_a_removed_tool_applies_to_its_late_result_and_after_a_resume() {
    let set_up = |steps: Vec<Step>| {
        let (builder, model) = TestModel::playing(steps);
        let (finish_sender, finish) = oneshot::channel();
        let builder = builder
            .tools([find_in_background(finish)])
            .decorate("find", approve_only_find());
        (builder, model, finish_sender)
    };
    let (builder, model, finish_sender) = set_up(vec![
        invoke("find"),
        reply("Wait."),
        invoke("customer_c2_delete"),
        reply("ok"),
    ]);
    let mut conversation = builder.build().unwrap();
    conversation.run("go").await.unwrap();
    conversation.remove_tool(&ToolId::native("find"));
    finish_sender.send(()).unwrap();
    let history = conversation.wake().await.unwrap().unwrap().history;
    assert!(
        tool_results(&history).last().unwrap().contains(DENIED),
        "{:?}",
        tool_results(&history)
    );
    let (builder, ..) = set_up(Vec::new());
    let resumed = builder.history(history).resume(model.events()).build().unwrap();
    for name in ["customer_c1_delete", "customer_c2_delete"] {
        let ToolLookup::Found(method) = resumed.tools().look_up(name) else {
            panic!("{name} is not found")
        };
        assert!(method.tool.decorator().is_some(), "{name} has no guard");
    }
}

// accept: 80
#[tokio::test]
async fn the_approval_of_a_tool_that_is_unregistered_during_the_response_applies_to_its_result() {
    let shared_tools = SharedToolSet::new();
    // `register` takes a `Tool` instead of an `Arc<dyn Tool>`. `with_name` wraps the `Arc` in such a type.
    shared_tools.register(find("find", 1).with_name("find"));
    let unregistering_set = shared_tools.clone();
    let change = tool("change", move |_, _| {
        assert!(unregistering_set.unregister("find"));
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
