//! Runs and their outcomes.

use super::*;
use crate::model::ChatOptions;
use toolwit_core::{Audience, Disposition, ToolStatus};

// accept: 1, accept: 2, accept: 4, accept: 126
#[tokio::test]
async fn the_model_calls_a_tool_and_answers() {
    let (builder, model) = TestModel::playing([call([("look", json!({"at": "sky"}))]), reply("It is blue.")]);
    let look = tool("look", |arguments, _| {
        Ok(ToolResult::text(format!("{} is blue", arguments["at"])))
    });
    let mut conversation = builder.system("Be brief.").tools([look]).build().unwrap();
    let outcome = conversation.run("What do you see?").await.unwrap();
    assert_eq!((outcome.text(), outcome.stop), ("It is blue.", StopReason::Answered));
    assert_eq!((outcome.iterations, outcome.tool_calls.len()), (2, 1));
    assert_eq!(model.request(0).messages.len(), 2);
    assert_eq!(tool_results(&model.request(1).messages), ["\"sky\" is blue"]);
    assert_eq!(outcome.history.len(), 5, "system, user, call, result, answer");
    assert_valid(&outcome.history);
}

// accept: 4
#[tokio::test]
async fn an_outcome_serialises_to_one_json_document() {
    let set_usage = |response: &mut ChatResponse| response.usage = TokenUsage::new(10, 4, 2);
    let (builder, _) = TestModel::playing([
        edit_response(call([("look", json!({}))]), set_usage),
        edit_response(reply("Done."), set_usage),
    ]);
    let outcome = builder.tools([echo("look")]).build().unwrap().run("go").await.unwrap();
    let mut document = serde_json::to_value(&outcome).unwrap();
    document["history"].take();
    document["tool_calls"][0]["wall_ms"].take();
    assert_eq!(
        document,
        json!({
            "answer": "Done.", "stop_reason": "answered", "iterations": 2,
            "tool_calls": [{"id": "1-0", "name": "look", "tool": "native#look", "is_error": false, "wall_ms": null}],
            "injected": [], "removed": [], "history": null,
            "usage": {"input_tokens": 20, "cached_tokens": 8, "output_tokens": 4, "injected_bytes": 0},
        })
    );
}

// accept: 9, accept: 11
#[tokio::test]
async fn text_next_to_a_call_stays_in_the_history() {
    let step = edit_response(call([("look", json!({}))]), |response| {
        response.content = "Let me look.".to_owned()
    });
    let (builder, model) = TestModel::playing([step, reply("Seen.")]);
    builder.tools([echo("look")]).build().unwrap().run("go").await.unwrap();
    assert_eq!(model.request(1).messages[1].content(), "Let me look.");
    assert_eq!(model.request(1).messages[1].tool_calls().len(), 1);
}

// accept: 12, accept: 128
#[tokio::test]
async fn a_conversation_without_tools_answers() {
    let (builder, model) = TestModel::playing([reply("Hello.")]);
    assert_eq!(builder.run("Hi").await.unwrap().text(), "Hello.");
    assert!(model.request(0).names.is_empty());
}

#[tokio::test]
async fn turns_share_one_history() {
    let (builder, model) = TestModel::playing([reply("One."), reply("Two.")]);
    let mut conversation = builder.build().unwrap();
    conversation.run("first").await.unwrap();
    let outcome = conversation.run("second").await.unwrap();
    assert_eq!(model.request(1).messages.len(), 3);
    assert_eq!(outcome.history.len(), 4);
    assert_eq!(model.events_named("turn_started")[1]["turn"], 2);
}

// accept: 133
#[tokio::test]
async fn an_earlier_history_gets_the_new_system_message_and_results_for_open_calls() {
    let open_call = ToolCall {
        id: "1-0".to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    let earlier_messages = vec![
        Message::system("old"),
        Message::user("hi"),
        Message::assistant("", vec![open_call]),
    ];
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), reply("Fine.")]);
    let mut conversation = builder
        .system("new")
        .history(earlier_messages)
        .tools([echo("look")])
        .build()
        .unwrap();
    let outcome = conversation.run("again").await.unwrap();
    assert_eq!(model.request(0).messages[0].content(), "new");
    assert_valid(&outcome.history);
}

// accept: 74, accept: 134, accept: 14
#[tokio::test]
async fn the_user_receives_the_messages_of_results_except_errors_and_results_for_the_model() {
    let loud = tool("loud", |_, _| Ok(ToolResult::user("ready")));
    let quiet = tool("quiet", |_, _| {
        let mut result = ToolResult::user("hush");
        result.audience = Audience::Model;
        Ok(result)
    });
    let failing = tool("failing", |_, _| Ok(ToolResult::error("").with_source("disk full")));
    let (builder, _) = TestModel::playing([
        call([("loud", json!({})), ("quiet", json!({})), ("failing", json!({}))]),
        reply("ok"),
    ]);
    let output = Arc::new(RecordingOutput::default());
    let outcome = builder
        .tools([loud, quiet, failing])
        .output(output.clone())
        .run("go")
        .await
        .unwrap();
    assert_eq!(*output.0.lock().unwrap(), ["ready"]);
    assert_eq!(tool_results(&outcome.history), ["ready", "hush", "disk full"]);
}

/// Records the messages for the user, and panics when it receives the message `poison`.
#[derive(Default)]
struct RecordingOutput(Mutex<Vec<String>>);

impl toolwit_core::OutputSink for RecordingOutput {
    fn progress(&self, _text: &str) {}

    fn communicate(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
        assert_ne!(text, "poison");
    }
}

#[tokio::test]
async fn an_output_that_panics_loses_only_its_message() {
    let poison = tool("poison", |_, _| Ok(ToolResult::user("poison")));
    let (builder, _) = TestModel::playing([call([("poison", json!({}))]), reply("ok")]);
    let outcome = builder
        .tools([poison])
        .output(Arc::new(RecordingOutput::default()))
        .run("go")
        .await
        .unwrap();
    assert_eq!(outcome.text(), "ok");
}

// accept: 75
#[tokio::test]
async fn a_direct_result_is_the_answer_unless_it_is_an_error() {
    let direct_result = |status| {
        move |_: Arguments, _: ToolContext| {
            let mut result = ToolResult::text("the report");
            result.disposition = Disposition::ReturnDirect;
            result.status = status;
            Ok(result)
        }
    };
    let tools = [
        tool("broken_report", direct_result(ToolStatus::Error)),
        tool("report", direct_result(ToolStatus::Success)),
        echo("look"),
    ];
    let (builder, model) = TestModel::playing([
        call([("broken_report", json!({}))]),
        call([("look", json!({})), ("report", json!({})), ("look", json!({}))]),
        reply("You are welcome."),
    ]);
    let mut conversation = builder.tools(tools).build().unwrap();
    let outcome = conversation.run("go").await.unwrap();
    assert_eq!((outcome.text(), outcome.stop), ("the report", StopReason::ReturnDirect));
    assert_eq!(model.request_count(), 2);
    assert_valid(&outcome.history);
    conversation.run("thanks").await.unwrap();
    assert_valid(conversation.history());
}

#[derive(serde::Deserialize, schemars::JsonSchema, PartialEq, Debug)]
struct Weather {
    /// Degrees Celsius.
    degrees: i32,
}

// accept: 5
#[tokio::test]
async fn a_typed_answer_is_parsed() {
    let (builder, model) = TestModel::playing([reply("```json\n{\"degrees\": 21}\n```")]);
    let typed = builder
        .build()
        .unwrap()
        .run_typed::<Weather>("How warm?")
        .await
        .unwrap();
    assert_eq!(typed.value, Weather { degrees: 21 });
    assert!(model.request(0).messages[0].content().contains("Degrees Celsius."));
}

// accept: 5
#[tokio::test]
async fn the_model_may_correct_a_malformed_answer_once() {
    let (builder, model) = TestModel::playing([reply("It is warm."), reply("{\"degrees\": 21}")]);
    let typed = builder
        .build()
        .unwrap()
        .run_typed::<Weather>("How warm?")
        .await
        .unwrap();
    assert_eq!(typed.value, Weather { degrees: 21 });
    assert_eq!(typed.outcome.iterations, 2);
    let correction_request = model.request(1).messages.last().unwrap().content().to_owned();
    assert!(
        correction_request.contains("does not fit the schema: expected value at line 1"),
        "{correction_request}"
    );
}

// accept: 5
#[tokio::test]
async fn a_second_malformed_answer_is_an_error_with_the_outcome() {
    let (builder, _) = TestModel::playing([reply("It is hot."), reply("It is warm.")]);
    let error = builder
        .build()
        .unwrap()
        .run_typed::<Weather>("How warm?")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, RunFailure::AnswerMalformed { .. }));
    assert_eq!(
        (error.outcome.text(), error.outcome.stop),
        ("It is warm.", StopReason::Answered)
    );
}

// accept: 13, accept: 88, accept: 147
#[tokio::test]
async fn the_context_reaches_tools_and_not_the_model() {
    let show = tool("show", |_, context| {
        let values = ["tenant", "channel", "chat_id"].map(|key| context.text(key).unwrap_or("-").to_owned());
        let loop_id = context.loop_id().unwrap().to_owned();
        Ok(ToolResult::text(values.join(" ")).with_artifact(toolwit_core::Artifact::new("loop", loop_id.into())))
    });
    let (builder, model) = TestModel::playing([
        call([("show", json!({}))]),
        reply("ok"),
        call([("show", json!({}))]),
        reply("ok"),
    ]);
    let conversation_context = ToolContext::new()
        .with("tenant", "acme")
        .with("channel", "mail")
        .with("key", "hunter2");
    let mut conversation = builder.tools([show]).context(conversation_context).build().unwrap();
    let turn_context = ToolContext::new().with("channel", "chat").with("chat_id", "42");
    conversation.turn("go").context(turn_context).run().await.unwrap();
    conversation.run("go").await.unwrap();
    assert_eq!(
        tool_results(conversation.history()),
        ["acme chat 42", "acme mail -"],
        "the context of a turn ends with the turn"
    );
    let loop_ids: Vec<_> = model
        .events_named("turn_started")
        .iter()
        .map(|event| event["loop_id"].clone())
        .collect();
    assert_ne!(loop_ids[0], loop_ids[1], "each run has its own id");
    let messages = format!("{:?}", model.request(3).messages);
    assert!(!messages.contains("hunter2"), "{messages}");
}

// accept: 13, accept: 84
#[tokio::test]
async fn concurrent_calls_of_one_tool_have_separate_contexts() {
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let show = NativeTool::new("show", "Shows.", json!({"type": "object"}), move |_, context| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(ToolResult::text(context.text("chat_id").unwrap_or("-")))
        }
    });
    let show = Arc::new(show.unwrap()) as Arc<dyn Tool>;
    let run = async |chat_id: &'static str| {
        let (builder, _) = TestModel::playing([call([("show", json!({}))]), reply("ok")]);
        let mut conversation = builder.tools([show.clone()]).build().unwrap();
        let context = ToolContext::new().with("chat_id", chat_id);
        let outcome = conversation.turn("go").context(context).run().await.unwrap();
        tool_results(&outcome.history)[0].to_owned()
    };
    let (first, second) = tokio::join!(run("1"), run("2"));
    assert_eq!((first.as_str(), second.as_str()), ("1", "2"));
}

#[tokio::test]
async fn a_required_tool_choice_applies_only_to_the_first_inference() {
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), reply("ok")]);
    let options = ChatOptions {
        tool_choice: ToolChoice::Required,
        ..Default::default()
    };
    builder.tools([echo("look")]).options(options).run("go").await.unwrap();
    assert_eq!(
        [model.request(0).tool_choice, model.request(1).tool_choice],
        [ToolChoice::Required, ToolChoice::Auto]
    );
}

#[tokio::test]
async fn a_builder_without_a_model_or_with_invalid_limits_is_refused() {
    let error = Conversation::builder().build().err().unwrap();
    assert!(error.suggestion.as_deref().unwrap().contains("`model`"));
    let limits = LoopLimits {
        iterations_max: 0,
        ..LoopLimits::default()
    };
    assert!(TestModel::playing([]).0.limits(limits).build().is_err());
}
