//! Guarantees to the authors of tools and strategies.

use super::*;
use crate::injection::{Injection, InjectionContext};
use toolwit_core::{NativeEntity, NoArguments, OutputSink, ToolProvider};

/// An output that records streamed text.
#[derive(Default)]
struct Screen(Mutex<Vec<String>>);

impl OutputSink for Screen {
    fn progress(&self, _: &str) {}

    fn communicate(&self, _: &str) {}

    fn model_text(&self, text: &str, _: &Origin) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

// accept: 16
#[tokio::test]
async fn an_answer_is_streamed_and_iterations_are_limited() {
    let streamed_answer: Step = Box::new(|request| {
        request.emit_text("It ");
        request.emit_text("is 42.");
        Ok(ChatResponse::new("It is 42.", Vec::new()))
    });
    let call_with_text = edit_response(call([("look", json!({}))]), |response| {
        response.content = "Let me look.".to_owned()
    });
    let (builder, _) = TestModel::playing([call_with_text, streamed_answer]);
    let screen = Arc::new(Screen::default());
    let builder = builder.tools([echo("look")]).output(screen.clone());
    let outcome = builder.build().unwrap().run("go").await.unwrap();
    assert_eq!(outcome.text(), "It is 42.");
    assert_eq!(
        *screen.0.lock().unwrap(),
        ["Let me look.", "It ", "is 42."],
        "each text is shown once, whether it was streamed or not"
    );
    let step = || call([("look", json!({}))]);
    let (builder, model) = TestModel::playing([step(), step(), step(), step(), step()]);
    let builder = builder.tools([echo("look")]).iterations_max(5);
    assert!(builder.build().unwrap().run("go").await.is_err());
    assert_eq!(model.request_count(), 5);
}

// accept: 22
#[tokio::test]
async fn a_function_that_adds_tools_is_a_strategy() {
    let unlock = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "review" => Injection::add(vec![echo("publish")]),
        _ => Injection::none(),
    };
    let (builder, model) = TestModel::playing([
        call([("review", json!({}))]),
        call([("publish", json!({}))]),
        reply("Done."),
    ]);
    let builder = builder.tools([echo("review")]).strategy(unlock);
    let outcome = builder.build().unwrap().run("go").await.unwrap();
    assert_eq!(model.request(1).names, ["review", "publish"]);
    assert!(outcome.removed.is_empty());
}

/// Returns an order with a method that returns the first line of the order. A line has a method too.
fn order(id: &'static str) -> Arc<dyn ToolProvider> {
    let line = |id: String| {
        let line = NativeEntity::new("line", Arc::new(id.clone())).with_id(&id);
        line.method("price", "Returns the price.", |id, _: NoArguments, _| async move {
            Ok::<_, String>(format!("{id}: 3"))
        })
        .unwrap()
    };
    let order = NativeEntity::new("order", Arc::new(id)).with_id(id);
    let order = order.method(
        "first_line",
        "Gets the first line.",
        move |id, _: NoArguments, _| async move {
            Ok::<_, String>(ToolResult::text("a line").with_provider(Arc::new(line(format!("{id}a")))))
        },
    );
    Arc::new(order.unwrap())
}

// accept: 42
#[tokio::test]
async fn entities_can_be_tested_with_a_fake_tool_that_returns_them() {
    let find = tool("find", |_, _| {
        Ok(ToolResult::text("two")
            .with_provider(order("1"))
            .with_provider(order("2")))
    });
    let result = find.call(Arguments::new(), &ToolContext::new()).await.unwrap();
    let ids: Vec<_> = result
        .providers
        .iter()
        .filter_map(|provider| provider.instance_id())
        .collect();
    assert_eq!(ids, ["1", "2"], "entities are extracted without a loop");
    let method_result = result.providers[1].tools()[0]
        .call(Arguments::new(), &ToolContext::new())
        .await
        .unwrap();
    assert_eq!(
        method_result.providers[0].instance_id().as_deref(),
        Some("2a"),
        "a bound method is called without a loop"
    );
    let steps = [
        call([("find", json!({}))]),
        call([("order_1_first_line", json!({})), ("order_2_first_line", json!({}))]),
        call([("line_2a_price", json!({}))]),
        reply("3."),
    ];
    let (builder, _) = TestModel::playing(steps);
    let outcome = builder.tools([find]).build().unwrap().run("go").await.unwrap();
    assert_eq!(tool_results(&outcome.history).last(), Some(&"2a: 3"));
    let injected: Vec<_> = outcome.injected.iter().map(|name| name.as_str()).collect();
    assert_eq!(
        injected,
        [
            "order_1_first_line",
            "order_2_first_line",
            "line_1a_price",
            "line_2a_price"
        ]
    );
}

// accept: 82, accept: 83, accept: 147
#[tokio::test]
async fn a_one_shot_tool_runs_once_per_loop_even_if_called_twice_in_one_response() {
    use toolwit_core::ToolExt;
    let skill = || ("skill", json!({}));
    let steps = [
        call([skill(), skill()]),
        call([skill()]),
        reply("Done."),
        call([skill()]),
        reply("Done."),
    ];
    let (builder, _) = TestModel::playing(steps);
    let builder = builder.tool(echo("skill").one_shot_per_loop("Write it now."));
    let mut conversation = builder.build().unwrap();
    conversation.run("go").await.unwrap();
    let outcome = conversation.run("again").await.unwrap();
    let ran: Vec<_> = tool_results(&outcome.history)
        .into_iter()
        .map(|answer| answer == "skill")
        .collect();
    assert_eq!(ran, [true, false, false, true], "each run is a separate loop");
}
