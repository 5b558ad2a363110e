//! Streamed responses, refusals, pauses, and the provider blocks of responses in the history.

use super::*;
use crate::model::ChatDelta;
use toolwit_core::{OutputSink, ProviderBlock};

/// Records the streamed texts, the reasoning and the announced calls, each with its kind.
#[derive(Default)]
struct RecordingScreen(Mutex<Vec<String>>);

impl RecordingScreen {
    fn add(&self, kind: &str, text: &str) {
        self.0.lock().unwrap().push(format!("{kind}: {text}"));
    }
}

impl OutputSink for RecordingScreen {
    fn progress(&self, _: &str) {}

    fn communicate(&self, _: &str) {}

    fn model_text(&self, text: &str, _: &Origin) {
        self.add("text", text);
    }

    fn reasoning(&self, text: &str, _: &Origin) {
        self.add("reasoning", text);
    }

    fn call_announced(&self, name: &str, _: &Origin) {
        self.add("call", name);
    }
}

fn block(data: &str) -> ProviderBlock {
    ProviderBlock {
        issuer: "api:host".to_owned(),
        data: json!(data),
        text_bytes_before: 0,
        calls_before: 0,
    }
}

// accept: 16
#[tokio::test]
async fn reasoning_text_and_each_call_reach_the_user_as_they_arrive() {
    let call_delta = |index, name, arguments| ChatDelta::Call { index, name, arguments };
    let first: Step = Box::new(move |request| {
        request.emit(ChatDelta::Reasoning("Hm."));
        request.emit_text("Let me look.");
        request.emit(call_delta(0, "look", ""));
        request.emit(call_delta(0, "look", "{"));
        request.emit(call_delta(1, "look", "{}"));
        request.emit(call_delta(0, "look", "}"));
        call([("look", json!({})), ("look", json!({}))])(request)
    });
    let (builder, _) = TestModel::playing([first, reply("Done.")]);
    let screen = Arc::new(RecordingScreen::default());
    let builder = builder.tools([echo("look")]).output(screen.clone());
    builder.build().unwrap().run("go").await.unwrap();
    assert_eq!(
        *screen.0.lock().unwrap(),
        [
            "reasoning: Hm.",
            "text: Let me look.",
            "call: look",
            "call: look",
            "text: Done."
        ]
    );
}

// accept: 9
#[tokio::test]
async fn provider_blocks_of_a_response_are_in_the_next_request_and_in_the_stored_history() {
    let reasoned = edit_response(call([("look", json!({}))]), |response| {
        response.reasoning = "Because.".to_owned();
        response.blocks = vec![block("signed")];
    });
    let (builder, model) = TestModel::playing([reasoned, reply("Done.")]);
    let mut conversation = builder.tools([echo("look")]).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_eq!(model.request(1).messages[1].blocks(), [block("signed")]);
    let stored = serde_json::to_string(&outcome.history).unwrap();
    assert!(
        !stored.contains("Because."),
        "readable reasoning is not part of the history"
    );
    let (builder, model) = TestModel::playing([reply("Again.")]);
    let history = serde_json::from_str(&stored).unwrap();
    builder.history(history).build().unwrap().run("go on").await.unwrap();
    assert_eq!(model.request(0).messages[1].blocks(), [block("signed")]);
}

#[tokio::test]
async fn a_refusal_with_text_is_the_answer_and_a_refusal_without_text_is_a_failure() {
    let refused = edit_response(reply(""), |response| {
        response.refusal = Some("I cannot.".to_owned());
        response.finish = FinishReason::Refusal;
    });
    let (builder, _) = TestModel::playing([refused]);
    let screen = Arc::new(RecordingScreen::default());
    let outcome = builder.output(screen.clone()).build().unwrap().run("go").await.unwrap();
    assert_eq!(outcome.text(), "I cannot.");
    assert_eq!(outcome.history[1].content(), "I cannot.");
    assert_eq!(*screen.0.lock().unwrap(), ["text: I cannot."]);
    let (builder, _) = TestModel::playing([edit_response(reply(""), |response| {
        response.finish = FinishReason::Refusal
    })]);
    let error = builder.build().unwrap().run("go").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::Withheld));
}

// attack: F1
#[tokio::test]
async fn a_call_without_arguments_runs_in_a_complete_response_only() {
    for (finish, executed_calls) in [
        (FinishReason::ToolCalls, 1),
        (FinishReason::Length, 0),
        (FinishReason::Refusal, 0),
        (FinishReason::Other("odd".to_owned()), 0),
    ] {
        let step = edit_response(call([("look", json!({}))]), {
            let finish = finish.clone();
            move |response| {
                response.tool_calls[0].arguments.clear();
                response.finish = finish;
            }
        });
        let (builder, _) = TestModel::playing([step, reply("Done.")]);
        let outcome = builder.tools([echo("look")]).build().unwrap().run("go").await.unwrap();
        assert_eq!(outcome.tool_calls.len(), executed_calls, "{finish:?}");
    }
}

/// Returns a step in which the provider pauses its response.
fn paused_step() -> Step {
    edit_response(reply("I search."), |response| {
        response.finish = FinishReason::Paused;
        response.usage = TokenUsage::new(10, 0, 5);
        response.blocks = vec![block("search")];
    })
}

#[tokio::test]
async fn a_paused_response_is_sent_back_and_continued() {
    let (builder, model) = TestModel::playing([paused_step(), paused_step(), reply("Sunny.")]);
    let outcome = builder.build().unwrap().run("weather?").await.unwrap();
    assert_eq!((outcome.text(), outcome.iterations), ("Sunny.", 3));
    let messages = model.request(2).messages;
    assert_eq!(messages.len(), 3, "no message of the user is added");
    assert_eq!(messages[2].blocks(), [block("search")]);
}

#[tokio::test]
async fn too_many_pauses_and_an_exhausted_budget_end_the_run() {
    let run = async |builder: ConversationBuilder| builder.build().unwrap().run("go").await.unwrap_err().failure;
    let twenty_pauses = || std::iter::repeat_with(paused_step).take(20);
    let (builder, model) = TestModel::playing(twenty_pauses());
    let failure = run(builder).await;
    assert!(matches!(failure, RunFailure::Model(ModelError::Paused)), "{failure:?}");
    assert_eq!(model.request_count(), 9);
    let (builder, model) = TestModel::playing(twenty_pauses());
    let limits = LoopLimits {
        tokens_max: Some(40),
        ..LoopLimits::default()
    };
    let failure = run(builder.limits(limits)).await;
    assert!(matches!(failure, RunFailure::TokenLimit { .. }), "{failure:?}");
    assert_eq!(model.request_count(), 3);
}

#[tokio::test]
async fn a_response_without_text_and_calls_is_an_error() {
    let malformed = edit_response(reply(""), |response| {
        response.finish = FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned());
    });
    let (builder, _) = TestModel::playing([malformed]);
    let error = builder.build().unwrap().run("go").await.unwrap_err();
    assert!(
        error.report().to_string().contains("MALFORMED_FUNCTION_CALL"),
        "{error:?}"
    );
}
