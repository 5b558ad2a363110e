//! Facades made from annotated types, and facades with tools that are added later.

use super::log::RecordedLog;
use super::unfolding::{facade, invoke, parse_json, run_steps};
use super::*;
use crate::injection::Facade;
use toolwit_core::ErrorKind;
use toolwit_macros::{facade, tool};
use tracing::Level;
use tracing::subscriber::with_default;

struct Files;

/// Reads and writes files.
#[facade(crate = toolwit_core, category = "data", usage_notes = "List before you read.")]
impl Files {
    /// Lists files.
    #[tool(category = "read")]
    fn list(&self) -> &'static str {
        "a.txt"
    }

    /// Writes a file.
    #[tool(category = "write")]
    fn write(&self) -> &'static str {
        "written"
    }
}

/// Works on a project.
#[facade(crate = toolwit_core, name = "work_on_project", category_parameter = "area", exclusive)]
struct Project {
    files: Arc<Files>,
    /// A field that is not a facade.
    _title: String,
}

#[tool(crate = toolwit_core)]
impl Project {
    /// Shows the status.
    #[tool(category = "status")]
    fn status(&self) -> &'static str {
        "green"
    }
}

fn project() -> Facade {
    let project = Project {
        files: Arc::new(Files),
        _title: "Toolwit".to_owned(),
    };
    Facade::from_instance(project).unwrap()
}

// accept: 56, accept: 58, accept: 59
#[tokio::test]
async fn an_annotated_type_is_a_facade_and_facades_in_its_fields_are_nested() {
    let steps = [
        call([("work_on_project", json!({"area": "data"}))]),
        call([("files", json!({"category": "read"}))]),
        call([("list", json!({}))]),
        reply("ok"),
    ];
    let (outcome, model) = run_steps([project()], steps).await;
    let first = &model.request(0).serialised_tools[0];
    assert!(
        first.contains("Works on a project.") && first.contains(r#""enum":["status","data"]"#),
        "{first}"
    );
    let results = tool_results(&outcome.history);
    assert_eq!(parse_json(results[0])["available_tools"], json!(["files"]));
    assert_eq!(parse_json(results[1])["available_tools"], json!(["list"]));
    assert_eq!(results[2], "a.txt");
    let declared = model.request(2).serialised_tools.concat();
    assert!(
        declared.contains("files_context") && declared.contains("List before you read."),
        "{declared}"
    );
}

// accept: 143
#[test]
fn an_annotated_type_without_tools_is_an_error_and_from_instance_or_none_returns_none() {
    /// Contains nothing.
    #[facade(crate = toolwit_core)]
    struct Empty;

    let error = Facade::from_instance(Empty).err().unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::InvalidProvider, "the facade `empty` has no tools")
    );
    assert!(Facade::from_instance_or_none(Empty).is_none());
    assert!(Facade::from_instance_or_none(Files).is_some());
}

// accept: 60
#[tokio::test]
async fn a_facade_with_added_tools_keeps_its_usage_notes_its_exclusiveness_and_its_tools() {
    let mood = Facade::builder("mood", "Sets the mood.")
        .tools([echo("formal")])
        .usage_notes("One mood at a time.")
        .exclusive();
    let mood = mood.build().unwrap().with_tools([echo("casual")]).unwrap();
    let steps = [
        invoke("mood"),
        call([("mood_context", json!({}))]),
        call([("look", json!({}))]),
        invoke("casual"),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let outcome = builder.tool(mood).tools([echo("look")]).run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(parse_json(results[0])["available_tools"], json!(["formal", "casual"]));
    assert_eq!(parse_json(results[1])["usage_notes"], "One mood at a time.");
    assert!(results[2].contains("cannot be called now"), "{}", results[2]);
    assert_eq!(results[3], "casual");
}

// accept: 60
#[test]
fn building_a_facade_without_tools_and_adding_no_tools_log_warnings() {
    let log = RecordedLog::default();
    let tool_count = with_default(log.clone(), || {
        facade("empty", &[]);
        let with_one_tool = facade("full", &["act"]);
        // The tools of this facade depend on the call that opens it, so it logs no warning.
        Facade::builder("later", "")
            .tools_from_context(|_| Ok(Vec::new()))
            .build()
            .unwrap();
        with_one_tool.with_tools([]).unwrap().tools().len()
    });
    assert_eq!(tool_count, 1, "the facade keeps its tool");
    let warnings = log.lines_at(Level::WARN);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("the facade has no inner tools"), "{warnings:?}");
    assert!(
        warnings[1].contains("no tools were added to the facade"),
        "{warnings:?}"
    );
}

// accept: 55
#[tokio::test]
async fn an_exclusive_facade_locks_later_calls_of_its_response_and_tells_the_model_how_to_leave() {
    let mood = Facade::builder("mood", "Sets the mood.")
        .tools([echo("formal")])
        .exclusive();
    let (builder, _) = TestModel::playing([
        call([
            ("look", json!({})),
            ("mood", json!({})),
            ("look", json!({})),
            ("formal", json!({})),
        ]),
        reply("ok"),
    ]);
    let outcome = builder
        .tool(mood.build().unwrap())
        .tools([echo("look")])
        .run("go")
        .await
        .unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!((results[0], results[3]), ("look", "formal"));
    let note = parse_json(results[1])["note"].as_str().unwrap().to_owned();
    assert!(
        note.contains("only these tools") && note.contains("to leave, answer the user"),
        "{note}"
    );
    assert!(results[2].contains("`look` cannot be called now"), "{}", results[2]);
    assert!(results[2].contains("to leave it, answer the user"), "{}", results[2]);
}
