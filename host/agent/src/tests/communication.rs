//! Messages of tools to the user.

use super::log::RecordedLog;
use super::*;
use toolwit_core::OutputSink;
use tracing::Level;

/// An output that records progress, with the prefix `… `, and messages.
#[derive(Default)]
struct Screen(Mutex<Vec<String>>);

impl OutputSink for Screen {
    fn progress(&self, text: &str) {
        self.0.lock().unwrap().push(format!("… {text}"));
    }

    fn communicate(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

// accept: 102, accept: 134, accept: 145
#[tokio::test]
async fn progress_is_transient_and_messages_stay_in_the_history() {
    let step = call([
        ("progress", json!({"message": "looking"})),
        ("communicate", json!({"message": "see /pulls/7"})),
    ]);
    let (builder, _) = TestModel::playing([step, reply("Done.")]);
    let screen = Arc::new(Screen::default());
    let builder = builder.tool(progress_tool().unwrap()).tool(communicate_tool().unwrap());
    let outcome = builder.output(screen.clone()).build().unwrap().run("go").await.unwrap();
    assert_eq!(*screen.0.lock().unwrap(), ["… looking", "see /pulls/7"]);
    let answers = tool_results(&outcome.history);
    assert!(!answers[0].contains("looking"));
    assert_eq!(answers[1], "The user received: see /pulls/7");
}

// accept: 102, accept: 127
#[tokio::test]
async fn communication_tools_do_nothing_outside_a_process() {
    let log = RecordedLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    for tool in [progress_tool().unwrap(), communicate_tool().unwrap()] {
        let arguments = json!({"message": "hello"}).as_object().unwrap().clone();
        let result = tool.call(arguments, &ToolContext::new()).await.unwrap();
        assert!(
            !result.is_error() && result.for_llm.contains("No user is connected"),
            "{}",
            result.for_llm
        );
        assert_eq!(result.for_user, None);
    }
    let warnings = log.lines_at(Level::WARN);
    assert!(
        warnings.len() == 2 && warnings.iter().all(|line| line.contains("its message is dropped")),
        "{warnings:?}"
    );
}

// accept: 74, accept: 134
#[tokio::test]
async fn a_silent_result_hides_its_user_text_and_the_json_of_results_has_no_source() {
    let silent = tool("silent", |_, _| {
        let mut result = ToolResult::silent("for the model").with_user_text("not shown");
        result = result.with_source("the cause");
        Ok(result)
    });
    let (builder, _) = TestModel::playing([call([("silent", json!({}))]), reply("Done.")]);
    let screen = Arc::new(Screen::default());
    builder
        .tools([silent])
        .output(screen.clone())
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap();
    assert!(screen.0.lock().unwrap().is_empty());
    let json_forms = [
        (
            ToolResult::text("a"),
            json!({"for_llm": "a", "silent": false, "is_error": false, "async": false}),
        ),
        (
            ToolResult::silent("a"),
            json!({"for_llm": "a", "silent": true, "is_error": false, "async": false}),
        ),
        (
            ToolResult::background("a"),
            json!({"for_llm": "a", "silent": false, "is_error": false, "async": true}),
        ),
        (
            ToolResult::user("a"),
            json!({"for_llm": "a", "for_user": "a", "silent": false, "is_error": false, "async": false}),
        ),
        (
            ToolResult::error("a").with_source("secret"),
            json!({"for_llm": "a", "silent": false, "is_error": true, "async": false}),
        ),
    ];
    for (result, expected) in json_forms {
        assert_eq!(serde_json::to_value(&result).unwrap(), expected);
    }
}
