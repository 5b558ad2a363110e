//! Tools that a search found on a server, in a conversation that is resumed from its journal.

use super::origins::Server;
use super::*;
use crate::strategy::ToolSources;
use toolwit_agent::injection::InjectionStrategy;
use toolwit_agent::{Journal, MemoryJournalStore};

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
