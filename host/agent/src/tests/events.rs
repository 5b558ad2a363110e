//! Events and observers.

use super::log::RecordedLog;
use super::*;
use crate::injection::{Injection, InjectionContext};
use toolwit_core::{DeniedAccess, Error, ErrorKind, Phase, ToolError, ToolId};
use tracing::Level;

/// Returns the names that a trace contains for the events.
fn event_names(model: &TestModel) -> Vec<String> {
    let events = model.events();
    let names = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["event"].clone());
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// A strategy that replaces the tool `old` by the tool `new` after a call of `look`.
fn replace_old(context: &InjectionContext<'_>) -> Injection {
    match context.call().name.as_str() {
        "look" => Injection::replace(ToolId::native("old"), vec![echo("new")]),
        _ => Injection::none(),
    }
}

// accept: 17
#[tokio::test]
async fn a_run_emits_its_events_in_order() {
    let (builder, model) = TestModel::playing([call([("look", json!({})), ("nowhere", json!({}))]), reply("ok")]);
    builder
        .tools([echo("look"), echo("old")])
        .strategy(replace_old)
        .run("go")
        .await
        .unwrap();
    assert_eq!(
        event_names(&model),
        [
            "turn_started",
            "iteration_started",
            "model_answered",
            "tool_started",
            "tool_finished",
            "tools_removed",
            "tools_injected",
            "call_refused",
            "iteration_started",
            "model_answered",
            "finished",
        ]
    );
    let second = &model.events_named("iteration_started")[1];
    assert_eq!(
        (&second["iteration"], &second["tools"], &second["providers"]),
        (&json!(2), &json!(3), &json!(0))
    );
    let injected = &model.events_named("tools_injected")[0];
    assert_eq!(
        (&injected["trigger"], &injected["names"]),
        (&json!("look"), &json!(["new"]))
    );
    let finished = &model.events_named("finished")[0];
    assert_eq!(
        (&finished["stop"], &finished["iterations"], &finished["tool_calls"]),
        (&json!("answered"), &json!(2), &json!(1))
    );
}

// accept: 18, accept: 23
#[tokio::test]
async fn injections_removals_and_calls_are_logged() {
    let log = RecordedLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let broken = tool("broken", |_, _| Ok(ToolResult::error("it is broken")));
    let (builder, _) = TestModel::playing([call([("look", json!({})), ("broken", json!({}))]), reply("ok")]);
    let builder = builder.tools([echo("look"), echo("old"), broken]).strategy(replace_old);
    builder.run("go").await.unwrap();
    let assert_logged = |level: Level, texts: &[&str]| {
        let lines = log.lines_at(level);
        let is_logged = lines.iter().any(|line| texts.iter().all(|text| line.contains(text)));
        assert!(is_logged, "no line contains {texts:?}: {lines:#?}");
    };
    assert_logged(
        Level::INFO,
        &["tools injected", "count=1", "trigger=look", "names=\"new\""],
    );
    assert_logged(
        Level::INFO,
        &["tools removed", "count=1", "trigger=look", "names=\"old\""],
    );
    assert_logged(Level::DEBUG, &["a tool call starts", "tool=look"]);
    assert_logged(
        Level::DEBUG,
        &[
            "a tool call ended",
            "tool=look",
            "wall_ms=",
            "is_error=false",
            "is_background=false",
        ],
    );
    assert_logged(Level::DEBUG, &["a tool call ended", "tool=broken", "is_error=true"]);
}

#[tokio::test]
async fn an_observer_that_panics_is_dropped_and_the_run_continues() {
    let event_count = Arc::new(Mutex::new(0));
    let count = event_count.clone();
    let (builder, model) = TestModel::playing([reply("ok")]);
    let outcome = builder
        .observer(move |_: &Event, _: &Origin| {
            *count.lock().unwrap() += 1;
            panic!("broken observer")
        })
        .run("go")
        .await;
    assert_eq!(outcome.unwrap().text(), "ok");
    assert_eq!(
        *event_count.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        1
    );
    assert_eq!(event_names(&model).len(), 4);
}

/// A buffer shared by the trace and the test.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_trace_contains_the_events() {
    let buffer = Buffer::default();
    let (builder, model) = TestModel::playing([call([("look", json!({}))]), reply("ok")]);
    let queued = Arc::new(QueuedObserver::new(Trace::new(buffer.clone())).unwrap());
    let mut conversation = builder
        .tools([echo("look")])
        .shared_observer(queued.clone())
        .build()
        .unwrap();
    conversation.run("go").await.unwrap();
    queued.flush();
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let entries: Vec<TraceEntry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let traced: Vec<_> = entries.iter().map(|entry| entry.event.clone()).collect();
    assert_eq!(traced, model.events());
}

#[tokio::test]
async fn denied_accesses_reach_the_operator_and_not_the_model() {
    let denied = |access: &str| DeniedAccess {
        plugin: "notes".to_owned(),
        access: access.to_owned(),
        reason: "no grant names the plugin".to_owned(),
        suggestion: "grant it".to_owned(),
        missing_grant: None,
    };
    let (first, second) = (denied("read `/secret-plan`"), denied("read `/secret-key`"));
    let (denied_to_read, denied_to_fail) = (first.clone(), second.clone());
    let read = tool("read", move |_, _| {
        let mut result = ToolResult::text("missing");
        result.denied = vec![denied_to_read.clone()];
        Ok(result)
    });
    let fail = tool("fail", move |_, _| {
        let error = Error::new(ErrorKind::Trap, Phase::Execute, "the guest trapped");
        Err(ToolError::Model(error.with_denied(vec![denied_to_fail.clone()])))
    });
    let (builder, model) = TestModel::playing([call([("read", json!({})), ("fail", json!({}))]), reply("ok")]);
    let outcome = builder.tools([read, fail]).run("go").await.unwrap();
    assert_eq!(outcome.denied, [first, second]);
    let events = model.events_named("access_denied");
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0]["denied"][0]["access"], "read `/secret-plan`");
    let history = serde_json::to_string(&outcome.history).unwrap();
    assert!(!history.contains("secret-") && !history.contains("grant"), "{history}");
}
