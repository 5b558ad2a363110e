//! Searches of tools of every origin: native tools, facades, servers and plugins.

use super::*;

/// A source of tools that counts its queries.
#[derive(Clone, Default)]
pub(super) struct Server {
    pub(super) queries: Arc<AtomicUsize>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
}

#[async_trait]
impl ToolSource for Server {
    fn name(&self) -> &str {
        "server"
    }

    async fn tools(&self, _context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        Ok(self.tools.clone())
    }
}

/// A source of tools that never returns them.
struct UnresponsiveServer;

#[async_trait]
impl ToolSource for UnresponsiveServer {
    fn name(&self) -> &str {
        "unresponsive"
    }

    async fn tools(&self, _context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        std::future::pending().await
    }
}

/// Returns a facade with the tool `water_roses`.
fn garden_facade(description: &str) -> Arc<dyn Tool> {
    let facade =
        Facade::builder("garden", description).tools([native_tool("water_roses", "Waters the roses in the garden")]);
    Arc::new(facade.build().unwrap())
}

// accept: 110, accept: 125
#[tokio::test]
async fn search_covers_native_tools_facades_and_servers() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server {
        tools: vec![native_tool("book_flight", "Books a flight to a city")],
        ..Server::default()
    };
    let search = tool_search(directory.path()).await;
    let search = search
        .with_tools([
            native_tool("convert_currency", "Converts an amount of money"),
            garden_facade("Everything about plants."),
        ])
        .with_source(server);
    let (builder, recorder) = recording_builder([
        call("convert_currency", json!({})),
        call("search_tools", json!({"need": "a tool that waters roses"})),
        call("garden", json!({})),
        call("water_roses", json!({})),
        call("search_tools", json!({"need": "a tool that books a flight"})),
        call("book_flight", json!({})),
        call("search_tools", json!({"need": "a tool that stores a note"})),
        answer("done"),
    ]);
    let mut conversation = builder
        .strategy(search)
        .tools([native_tool("remember_note", "Stores a note")])
        .build()
        .unwrap();
    conversation.run("Convert my money to another currency").await.unwrap();
    let requests = recorder.requests.lock().unwrap().clone();
    let last_message = |index: usize| requests[index].messages.last().unwrap().content().to_owned();
    assert_eq!(requests[0].names, ["search_tools", "remember_note", "convert_currency"]);
    assert_eq!(last_message(1), "convert_currency ran");
    assert!(
        requests[2].names.contains(&"garden".to_owned()),
        "{:?}",
        requests[2].names
    );
    assert!(
        last_message(2).contains("water_roses"),
        "the result lists the facade with its inner tool: {}",
        last_message(2)
    );
    assert_eq!(last_message(4), "water_roses ran");
    assert_eq!(last_message(6), "book_flight ran");
    assert!(
        last_message(7).contains("remember_note"),
        "the search finds a tool that the conversation already has: {}",
        last_message(7)
    );
    assert_eq!(requests[7].names, requests[6].names);
}

// accept: 116
#[tokio::test]
async fn repeated_search_does_not_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server {
        tools: vec![native_tool("book_flight", "Books a flight to a city")],
        ..Server::default()
    };
    let search = tool_search(directory.path()).await.with_source(server.clone());
    let (builder, recorder) = recording_builder([
        call("search_tools", json!({"need": "book a flight"})),
        call("search_tools", json!({"need": "the flight: booking"})),
        call("search_tools", json!({"need": "send an email"})),
        answer("done"),
    ]);
    builder
        .strategy(search)
        .build()
        .unwrap()
        .run("book a flight to a city")
        .await
        .unwrap();
    let requests = recorder.requests.lock().unwrap().clone();
    let last_message = |index: usize| requests[index].messages.last().unwrap().content().to_owned();
    assert_eq!(
        requests[0].names,
        ["search_tools", "book_flight"],
        "the automatic search found it before the first inference"
    );
    for index in [1, 2] {
        // Request 1 contains the result of the model's first search. The automatic search had found the same tool before.
        assert!(
            last_message(index).contains("an earlier search found these tools"),
            "{}",
            last_message(index)
        );
        assert!(!last_message(index).contains("you searched"), "{}", last_message(index));
    }
    assert!(
        last_message(3).contains("these are your tools now"),
        "{}",
        last_message(3)
    );
    let queries = server.queries.load(Ordering::Relaxed);
    assert_eq!(
        queries, 3,
        "the message, the first need and the email query the source, the repetition does not"
    );
}

// accept: 119
#[tokio::test]
async fn source_that_does_not_answer_delays_a_search_by_five_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let registry = registry(directory.path()).await;
    for plugin in registry.plugins() {
        plugin.compile().await.unwrap();
    }
    // The clock is paused after compiling, because a paused clock does not wait for the threads that compile.
    tokio::time::pause();
    let search = ToolSearch::new(registry, Scope::new()).with_source(UnresponsiveServer);
    let (builder, recorder) = recording_builder([answer("done")]);
    let started = tokio::time::Instant::now();
    builder
        .strategy(search)
        .build()
        .unwrap()
        .run("the weather")
        .await
        .unwrap();
    let elapsed = started.elapsed();
    assert!(
        elapsed >= SEARCH_WALL_MAX && elapsed < 2 * SEARCH_WALL_MAX,
        "{elapsed:?}"
    );
    let requests = recorder.requests.lock().unwrap().clone();
    assert_eq!(
        requests[0].names,
        ["search_tools", "get_forecast"],
        "the search finds the tools of the registry"
    );
}

// accept: 114
#[tokio::test]
async fn a_found_tool_never_takes_the_name_of_a_static_one() {
    let directory = tempfile::tempdir().unwrap();
    let search = tool_search(directory.path()).await;
    let static_tool = NativeTool::new("get_forecast", "Mine", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text("mine"))
    });
    let (builder, recorder) = recording_builder([call("get_forecast", json!({})), answer("done")]);
    let mut conversation = builder.strategy(search).tool(static_tool.unwrap()).build().unwrap();
    conversation.run("weather").await.unwrap();
    let requests = recorder.requests.lock().unwrap().clone();
    assert_eq!(requests[0].names.len(), 3, "{:?}", requests[0].names);
    assert_eq!(requests[1].messages.last().unwrap().content(), "mine");
}

/// An embedding model that maps two synonyms to the same vector.
struct SynonymModel;

impl EmbeddingModel for SynonymModel {
    fn embed(&self, text: &str) -> Option<Vec<f32>> {
        let synonyms = [
            ["roses", "plants"],
            ["flight", "travel"],
            ["money", "euros"],
            ["note", "reminder"],
        ];
        let has_word = |pair: [&str; 2]| f32::from(u8::from(pair.iter().any(|word| text.contains(word))));
        let vector = synonyms.map(has_word).to_vec();
        vector.contains(&1.0).then_some(vector)
    }
}

#[tokio::test]
async fn an_embedding_model_finds_tools_of_every_origin_by_their_meaning() {
    for has_model in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let model = has_model.then(|| Arc::new(SynonymModel) as Arc<dyn EmbeddingModel>);
        let paths = [directory.path().to_owned()];
        let runtime = Runtime::new(RuntimeOptions::default()).unwrap();
        let registry = LiveRegistry::open(
            &runtime,
            &paths,
            MissingPath::Error,
            Arc::new(MemoryStore::new()),
            model,
        );
        let server = Server {
            tools: vec![native_tool("book_flight", "Books a flight to a city")],
            ..Server::default()
        };
        let search = ToolSearch::new(registry.await.unwrap(), Scope::new())
            .with_tools([
                native_tool("convert_currency", "Converts an amount of money"),
                garden_facade("Waters and cuts."),
            ])
            .with_source(server);
        let needs = [
            ("euros", "convert_currency"),
            ("plants", "garden"),
            ("travel", "book_flight"),
            ("reminder", "remember_note"),
        ];
        let calls = needs.map(|(need, _)| call("search_tools", json!({"need": need})));
        let (builder, recorder) = recording_builder(calls.into_iter().chain([answer("done")]));
        let builder = builder
            .strategy(search)
            .tools([native_tool("remember_note", "Stores a note")]);
        builder.build().unwrap().run("Please go on").await.unwrap();
        let requests = recorder.requests.lock().unwrap().clone();
        for (index, (need, name)) in needs.iter().enumerate() {
            let found = requests[index + 1].messages.last().unwrap().content();
            assert_eq!(found.contains(name), has_model, "{need}: {found}");
        }
    }
}
