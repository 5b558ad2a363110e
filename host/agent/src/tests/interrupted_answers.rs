//! The text of a response that is interrupted, and the times of messages, in the history and in a reopened session.

use super::journal::session_id;
use super::*;
use crate::{Journal, JournalStore, MemoryJournalStore, TraceEntry};
use toolwit_core::OutputSink;

/// An output that a person reads.
struct Terminal;

impl OutputSink for Terminal {
    fn progress(&self, _: &str) {}

    fn communicate(&self, _: &str) {}
}

fn shown() -> ToolContext {
    ToolContext::new().with_output(Arc::new(Terminal))
}

/// Returns a step that streams `text` and then fails with `error`.
fn streamed_then(text: &str, error: ModelError) -> Step {
    let text = text.to_owned();
    Box::new(move |request| {
        request.emit_text(&text);
        Err(error)
    })
}

fn unavailable() -> ModelError {
    ModelError::Unavailable {
        attempts: 1,
        message: "the connection was lost".to_owned(),
        status: None,
    }
}

/// Returns the role and the text of each message.
fn texts(messages: &[Message]) -> Vec<(&'static str, String)> {
    let text = |message: &Message| {
        let role = match message.role {
            Role::User { .. } => "user",
            Role::Assistant { .. } => "model",
            _ => "other",
        };
        (role, message.content().to_owned())
    };
    messages.iter().map(text).collect()
}

// accept: 3, accept: 133
#[tokio::test]
async fn the_text_that_the_user_saw_before_an_interruption_is_in_the_next_request_and_in_the_reopened_session() {
    for error in [ModelError::Cancelled, unavailable()] {
        let store = MemoryJournalStore::new();
        let journal = Journal::create(&store, &session_id()).await.unwrap();
        let (builder, model) = TestModel::playing([streamed_then("Rome is", error), reply("It is old.")]);
        let mut conversation = builder.journal(journal).build().unwrap();
        conversation
            .turn("What is Rome?")
            .context(shown())
            .run()
            .await
            .unwrap_err();
        conversation.run("go on").await.unwrap();
        let expected = [
            ("user", "What is Rome?"),
            ("model", "Rome is\n\n[interrupted]"),
            ("user", "go on"),
        ]
        .map(|(role, text)| (role, text.to_owned()));
        assert_eq!(texts(&model.request(1).messages), expected);
        let history = texts(conversation.history());
        drop(conversation);
        let (builder, _) = TestModel::playing([]);
        let journal = Journal::open(&store, &session_id()).await.unwrap();
        let reopened = builder.journal(journal).build().unwrap();
        assert_eq!(texts(reopened.history()), history);
    }
}

// accept: 3
#[tokio::test]
async fn a_run_that_is_dropped_keeps_the_text_that_the_user_saw() {
    let (builder, _) = TestModel::playing([]);
    let mut conversation = builder.model(StreamingForever).build().unwrap();
    let mut dropped = Box::pin(conversation.turn("go").context(shown()).run());
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert_eq!(conversation.history()[1].content(), "Once upon\n\n[interrupted]");
}

// accept: 3
#[tokio::test]
async fn a_text_that_nobody_saw_is_not_kept() {
    let (builder, _) = TestModel::playing([streamed_then("Rome is", ModelError::Cancelled)]);
    let mut conversation = builder.build().unwrap();
    conversation.run("What is Rome?").await.unwrap_err();
    assert_eq!(conversation.history().len(), 1);
}

/// A model that streams a text and never ends its response.
struct StreamingForever;

#[async_trait]
impl ChatModel for StreamingForever {
    fn name(&self) -> &str {
        "forever"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        request.emit_text("Once upon");
        std::future::pending().await
    }
}

// accept: 3
#[tokio::test]
async fn a_response_that_is_complete_or_shows_no_text_leaves_no_interrupted_answer() {
    let streamed_reply: Step = Box::new(|request| {
        request.emit_text("Done.");
        Ok(ChatResponse::new("Done.", Vec::new()))
    });
    let (builder, model) = TestModel::playing([streamed_reply, streamed_then("", ModelError::Cancelled)]);
    let mut conversation = builder.build().unwrap();
    conversation.run("one").await.unwrap();
    conversation.run("two").await.unwrap_err();
    assert!(model.events_named("answer_interrupted").is_empty());
    assert_eq!(conversation.history().len(), 3);
}

// accept: 9
#[tokio::test]
async fn the_messages_of_a_reopened_session_have_the_times_of_their_entries() {
    let full = MemoryJournalStore::new();
    let journal = Journal::create(&full, &session_id()).await.unwrap();
    let (builder, _) = TestModel::playing([call([("look", json!({}))]), reply("ok")]);
    let builder = builder.tools([echo("look")]).journal(journal);
    builder.run("go").await.unwrap();
    let mut entries = full.entries(&session_id()).await.unwrap();
    entries
        .iter_mut()
        .for_each(|entry| entry.at_ms = 1_000 + entry.sequence);
    let time_of = |is_searched: fn(&Event) -> bool| {
        let entry = entries.iter().rfind(|entry: &&TraceEntry| is_searched(&entry.event));
        entry.unwrap().at_ms
    };
    let first_answer = entries
        .iter()
        .find(|entry| matches!(entry.event, Event::ModelAnswered { .. }));
    let expected = [
        time_of(|event| matches!(event, Event::TurnStarted { .. })),
        first_answer.unwrap().at_ms,
        time_of(|event| matches!(event, Event::ToolFinished { .. })),
        time_of(|event| matches!(event, Event::ModelAnswered { .. })),
    ];
    let store = MemoryJournalStore::new();
    store
        .create(&session_id())
        .await
        .unwrap()
        .append(entries)
        .await
        .unwrap();
    let (builder, _) = TestModel::playing([]);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let reopened = builder.tools([echo("look")]).journal(journal).build().unwrap();
    let times: Vec<_> = reopened.history().iter().map(|message| message.timestamp_ms).collect();
    assert_eq!(times, expected);
    assert!(reopened.interrupted_run().is_none());
}
