//! Histories that no longer fit into the context of the model.

use super::*;
use crate::model::{DescribedModel, Price};
use crate::{Journal, JournalStore, MemoryJournalStore, Recording, Replay, SessionId, Trace, TraceEntry};

fn session_id() -> SessionId {
    "s".parse().unwrap()
}

/// Returns the tool `look`. Three of its results exceed a context limit of 1500 tokens.
fn look_tool() -> Arc<dyn Tool> {
    tool("look", |_, _| Ok(ToolResult::text("x".repeat(2000))))
}

/// Returns the steps of a run: three tool calls, the summary of older messages and the answer.
fn steps() -> Vec<Step> {
    let look = || call([("look", json!({}))]);
    let summary = edit_response(reply("three looks"), |response| {
        response.usage = TokenUsage::new(70, 7, 0);
    });
    vec![look(), look(), look(), summary, reply("done")]
}

// accept: 133
#[tokio::test]
async fn older_messages_are_summarized_and_the_history_stays_valid() {
    let (builder, model) = TestModel::playing(steps());
    let mut conversation = builder
        .tools([look_tool()])
        .system("Be brief.")
        .context_tokens_max(1500)
        .build()
        .unwrap();
    let outcome = conversation.run("look around").await.unwrap();
    assert_eq!(outcome.text(), "done");
    assert_valid(conversation.history());
    let summary = model.request(3);
    assert!(summary.names.is_empty(), "the request for the summary has no tools");
    assert!(summary.messages[1].content().contains("<call>look {}</call>"));
    let last = model.request(4);
    let texts: Vec<_> = last.messages.iter().take(3).map(Message::content).collect();
    assert_eq!(texts[..2], ["Be brief.", "look around"]);
    assert!(texts[2].contains("three looks"));
    assert_eq!(last.names, model.request(0).names, "the tools stay declared");
    assert!(last.messages.len() < 7, "{}", last.messages.len());
    let events = model.events_named("history_compacted");
    assert_eq!((events.len(), &events[0]["usage"]["input_tokens"]), (1, &json!(70)));
    assert_eq!(
        outcome.usage.tokens.input_tokens, 70,
        "the tokens of the summary are counted"
    );
}

#[tokio::test]
async fn a_history_that_has_no_limit_or_fits_its_limit_is_not_compacted() {
    for limit in [None, Some(100_000)] {
        let look = || call([("look", json!({}))]);
        let (mut builder, model) = TestModel::playing([look(), look(), look(), reply("done")]);
        if let Some(limit) = limit {
            builder = builder.context_tokens_max(limit);
        }
        builder.tools([look_tool()]).build().unwrap().run("go").await.unwrap();
        assert!(model.events_named("history_compacted").is_empty());
    }
}

#[tokio::test]
async fn a_limit_that_is_too_small_for_a_conversation_is_refused() {
    let (builder, _) = TestModel::playing([]);
    let error = builder.context_tokens_max(10).build().err();
    assert!(error.is_some_and(|error| error.to_string().contains("context_tokens_max")));
}

#[tokio::test]
async fn a_failed_summary_ends_the_run_and_does_not_change_the_history() {
    let mut steps = steps();
    steps[3] = Box::new(|_| {
        Err(ModelError::Script {
            message: "no".to_owned(),
        })
    });
    let (builder, _) = TestModel::playing(steps);
    let mut conversation = builder.tools([look_tool()]).context_tokens_max(1500).build().unwrap();
    let error = conversation.run("look around").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::Model(_)));
    assert_eq!(conversation.history().len(), 7);
    assert_valid(conversation.history());
}

#[tokio::test]
async fn a_summary_in_the_journal_is_not_requested_again() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing(steps());
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let mut first = builder
        .tools([look_tool()])
        .context_tokens_max(1500)
        .journal(journal)
        .build()
        .unwrap();
    first.run("look around").await.unwrap();
    let expected = first.history().to_vec();
    drop(first);
    let entries = store.entries(&session_id()).await.unwrap();
    let is_compaction = |entry: &TraceEntry| matches!(entry.event, Event::HistoryCompacted(_));
    let compaction = entries.iter().position(is_compaction).unwrap();

    let interrupted = MemoryJournalStore::new();
    let writer = interrupted.create(&session_id()).await.unwrap();
    writer.append(entries[..=compaction].to_vec()).await.unwrap();
    drop(writer);
    // The script has only the answer. A second request for a summary would fail.
    let (builder, model) = TestModel::playing([reply("done")]);
    let journal = Journal::open(&interrupted, &session_id()).await.unwrap();
    let builder = builder.tools([look_tool()]).context_tokens_max(1500).journal(journal);
    let mut second = builder.build().unwrap();
    let resumed = second.resume_run(ToolContext::default().cancel_token().clone()).await;
    assert_eq!(resumed.unwrap().unwrap().text(), "done");
    assert_eq!(model.request_count(), 1);
    let texts =
        |history: &[Message]| -> Vec<String> { history.iter().map(|message| message.content().to_owned()).collect() };
    assert_eq!(texts(second.history()), texts(&expected));
}

#[tokio::test]
async fn a_pinned_message_stays_pinned_after_a_restart() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([reply("hello"), reply("here"), reply("yes")]);
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let mut first = builder.journal(journal).build().unwrap();
    assert_eq!(first.pin_last_user_message().await.unwrap(), None, "no message to pin");
    first.run("hi").await.unwrap();
    first.run("my name is Ada").await.unwrap();
    assert_eq!(first.pin_last_user_message().await.unwrap(), Some("my name is Ada"));
    let is_pin = |entry: &TraceEntry| matches!(entry.event, Event::MessagePinned);
    let entries = store.entries(&session_id()).await.unwrap();
    assert!(entries.iter().any(is_pin), "the pin is stored at once");
    first.run("are you there?").await.unwrap();
    drop(first);
    let mut second_steps = steps();
    second_steps.insert(0, reply("yes"));
    let (builder, model) = TestModel::playing(second_steps);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let builder = builder.tools([look_tool()]).context_tokens_max(1500).journal(journal);
    let mut second = builder.build().unwrap();
    second.run("are you still there?").await.unwrap();
    second.run("look around").await.unwrap();
    assert_eq!(model.events_named("history_compacted").len(), 1);
    let texts: Vec<_> = second.history().iter().map(Message::content).collect();
    assert!(texts.contains(&"my name is Ada"), "{texts:?}");
    assert!(!texts.contains(&"are you still there?"), "{texts:?}");
    assert_valid(second.history());
}

/// Returns a step in which the provider refuses the request because it exceeds the context.
fn context_exceeded() -> Step {
    Box::new(|_| {
        Err(ModelError::ContextExceeded {
            status: 400,
            message: "prompt is too long".to_owned(),
        })
    })
}

#[tokio::test]
async fn the_history_of_a_refused_request_is_compacted_and_the_request_is_sent_again() {
    let mut steps = steps();
    steps.insert(3, context_exceeded());
    let (builder, model) = TestModel::playing(steps);
    let mut conversation = builder.tools([look_tool()]).build().unwrap();
    let outcome = conversation.run("look around").await.unwrap();
    assert_eq!((outcome.text(), outcome.iterations), ("done", 4));
    assert_valid(conversation.history());
    assert!(
        model.request(4).names.is_empty(),
        "the request for the summary has no tools"
    );
    assert!(model.request(5).messages.len() < model.request(3).messages.len());
    assert_eq!(model.events_named("history_compacted")[0]["after_refusal"], true);
}

#[tokio::test]
async fn a_replay_compacts_the_history_after_the_recorded_refusal() {
    let mut steps = steps();
    steps.insert(3, context_exceeded());
    let trace = Arc::new(Trace::new(Vec::new()));
    let (builder, _) = TestModel::playing(steps);
    let builder = builder.tools([look_tool()]).journal(Journal::unstored());
    let mut conversation = builder.shared_observer(trace.clone()).build().unwrap();
    conversation.run("look around").await.unwrap();
    let contents = |conversation: &Conversation| {
        let messages = conversation.history().iter();
        messages.map(|message| message.content().to_owned()).collect::<Vec<_>>()
    };
    let recorded = contents(&conversation);
    drop(conversation);
    let trace = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    let replay = Replay::new(Recording::parse(&trace).unwrap()).start();
    let replayed = Conversation::builder().tools([look_tool()]).replay(&replay);
    let mut replayed = replayed.build().unwrap();
    assert_eq!(replayed.run("look around").await.unwrap().text(), "done");
    assert!(replay.differences().is_empty(), "{:?}", replay.differences());
    assert_eq!(contents(&replayed), recorded);
}

#[tokio::test]
async fn a_request_that_still_exceeds_the_context_is_an_error() {
    let mut steps = steps();
    steps.insert(3, context_exceeded());
    steps[5] = context_exceeded();
    let (builder, model) = TestModel::playing(steps);
    let mut conversation = builder.tools([look_tool()]).build().unwrap();
    let error = conversation.run("look around").await.unwrap_err();
    let is_refused = matches!(error.failure, RunFailure::Model(ModelError::ContextExceeded { .. }));
    assert!(is_refused && model.request_count() == 6, "{error:?}");
}

#[tokio::test]
async fn a_request_without_older_messages_is_not_sent_again() {
    let (builder, model) = TestModel::playing([context_exceeded()]);
    let error = builder.build().unwrap().run("go").await.unwrap_err();
    let is_refused = matches!(error.failure, RunFailure::Model(ModelError::ContextExceeded { .. }));
    assert!(is_refused && model.request_count() == 1, "{error:?}");
}

#[tokio::test]
async fn the_default_limit_is_the_context_size_that_the_model_declares() {
    let (_, model) = TestModel::playing(steps());
    let described = DescribedModel::new(model.clone()).with_price(Price::per_million(1.0, 1.0));
    let builder = Conversation::builder().model(described.with_context_tokens(2000));
    let outcome = builder
        .tools([look_tool()])
        .build()
        .unwrap()
        .run("look around")
        .await
        .unwrap();
    assert_eq!(outcome.text(), "done");
    assert!(model.request(3).names.is_empty(), "older messages are summarized");
}
