//! Tools that a search found on a server, in a conversation that is resumed from its journal.

use super::origins::Server;
use super::*;
use crate::strategy::ToolSources;
use tokio_util::sync::CancellationToken;
use toolwit_agent::injection::InjectionStrategy;
use toolwit_agent::{Event, Journal, JournalStore, MemoryJournalStore, Resolution, RunError, RunFailure, RunOutcome};

/// Runs a conversation that finds and calls a tool of a server. Then resumes the conversation with a new strategy, and
/// calls the tool without another search. Returns the result of the second call.
async fn call_result_after_resume<S: InjectionStrategy + 'static>(strategy: impl AsyncFn(Server) -> S) -> String {
    let server = || Server {
        tools: vec![native_tool("book_flight", "Books a flight to a city")],
        ..Server::default()
    };
    let (store, session) = (MemoryJournalStore::new(), "trip".parse().unwrap());
    let (builder, _) = recording_builder([
        call("search_tools", json!({"need": "a tool that books a flight"})),
        call("book_flight", json!({})),
        answer("booked"),
    ]);
    let journal = Journal::create(&store, &session).await.unwrap();
    let builder = builder.strategy(strategy(server()).await).journal(journal);
    builder.build().unwrap().run("Hello").await.unwrap();

    let (builder, recorder) = recording_builder([call("book_flight", json!({})), answer("booked again")]);
    let journal = Journal::open(&store, &session).await.unwrap();
    let builder = builder.strategy(strategy(server()).await).journal(journal);
    builder.build().unwrap().run("Once more").await.unwrap();
    let requests = recorder.requests.lock().unwrap();
    let message = requests.last().unwrap().messages.last().unwrap().content();
    message.to_owned()
}

// accept: 126
#[tokio::test]
async fn a_tool_of_a_server_works_after_a_resume() {
    let directory = tempfile::tempdir().unwrap();
    let search = async |server: Server| tool_search(directory.path()).await.with_source(server);
    assert_eq!(call_result_after_resume(search).await, "book_flight ran");
    let fallback_search = async |server: Server| {
        let search = tool_search(directory.path()).await.with_source(server.clone());
        let source: Arc<dyn ToolSource> = Arc::new(server);
        // With a maximum of 0 tools, the fallback search is always used.
        ToolSources::new([source]).with_fallback_search(0, search)
    };
    assert_eq!(call_result_after_resume(fallback_search).await, "book_flight ran");
}

/// Runs a conversation that ends with its process during a call of a server's tool, and resumes it with a new strategy. Returns
/// the outcome, the result of the call, and the number of queries of the second server.
async fn resume_in_a_call<S: InjectionStrategy + 'static>(
    strategy: impl AsyncFn(Server) -> S,
    first_step: Option<ChatResponse>,
    second_tools: Vec<Arc<dyn Tool>>,
) -> (Result<RunOutcome, RunError>, usize) {
    let server = |tools| Server {
        tools,
        ..Server::default()
    };
    let flight = native_tool("book_flight", "Books a flight to a city");
    let (full, killed, session) = (
        MemoryJournalStore::new(),
        MemoryJournalStore::new(),
        "trip".parse().unwrap(),
    );
    let steps = first_step
        .into_iter()
        .chain([call("book_flight", json!({})), answer("booked")]);
    let (builder, _) = recording_builder(steps);
    let journal = Journal::create(&full, &session).await.unwrap();
    let builder = builder.strategy(strategy(server(vec![flight])).await).journal(journal);
    builder.build().unwrap().run("Hello").await.unwrap();
    let entries = full.entries(&session).await.unwrap();
    let is_start = |event: &Event| matches!(event, Event::ToolStarted { name, .. } if name.as_str() == "book_flight");
    let start = entries.iter().position(|entry| is_start(&entry.event)).unwrap();
    let writer = killed.create(&session).await.unwrap();
    writer.append(entries[..=start].to_vec()).await.unwrap();
    drop(writer);

    let second_server = server(second_tools);
    let queries = second_server.queries.clone();
    let (builder, _) = recording_builder([answer("booked again")]);
    let journal = Journal::open(&killed, &session).await.unwrap();
    let builder = builder.strategy(strategy(second_server).await).journal(journal);
    let mut conversation = builder.build().unwrap();
    assert_eq!(queries.load(Ordering::Relaxed), 0, "building contacts no server");
    for unresolved in conversation.interrupted_run().unwrap().unresolved() {
        assert!(conversation.resolve_call(&unresolved.id, Resolution::RunAgain));
    }
    let outcome = conversation.resume_run(CancellationToken::new()).await.unwrap();
    (outcome, queries.load(Ordering::Relaxed))
}

#[tokio::test]
async fn an_interrupted_call_of_a_server_runs_again_after_a_resume() {
    let directory = tempfile::tempdir().unwrap();
    let tools = || vec![native_tool("book_flight", "Books a flight to a city")];
    let all = async |server: Server| ToolSources::new([Arc::new(server) as Arc<dyn ToolSource>]);
    let search = async |server: Server| tool_search(directory.path()).await.with_source(server);
    let fallback = async |server: Server| {
        let search = tool_search(directory.path()).await.with_source(server.clone());
        ToolSources::new([Arc::new(server) as Arc<dyn ToolSource>]).with_fallback_search(0, search)
    };
    let need = || Some(call("search_tools", json!({"need": "a tool that books a flight"})));
    for (outcome, queries) in [
        resume_in_a_call(all, None, tools()).await,
        resume_in_a_call(search, need(), tools()).await,
        resume_in_a_call(fallback, need(), tools()).await,
    ] {
        let outcome = outcome.unwrap();
        let results = outcome
            .history
            .iter()
            .filter(|message| message.content() == "book_flight ran");
        assert_eq!(results.count(), 1, "{:?}", outcome.history);
        assert_eq!(queries, 1, "the server is contacted once");
    }
    let (outcome, _) = resume_in_a_call(all, None, Vec::new()).await;
    let error = outcome.unwrap_err();
    let RunFailure::Tool(error) = &error.failure else {
        unreachable!("{error}")
    };
    assert!(error.message.contains("`book_flight`"), "{error}");
}
