//! Events and observers.

use super::*;
use crate::injection::Injection;
use toolwit_core::ToolId;

fn kinds(stage: &Stage) -> Vec<String> {
    let events = stage.events();
    let named = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["event"].clone());
    named.map(|name| name.as_str().unwrap().to_owned()).collect()
}

// accept: 17, accept: 18
#[tokio::test]
async fn a_run_emits_its_events_in_order() {
    let bring = |context: &crate::injection::InjectionContext<'_>| match context.call().name.as_str() {
        "look" => Injection::replace(ToolId::native("old"), vec![echo("new")]),
        _ => Injection::none(),
    };
    let (builder, stage) = Stage::set([call([("look", json!({})), ("nowhere", json!({}))]), say("ok")]);
    builder
        .tools([echo("look"), echo("old")])
        .strategy(bring)
        .run("go")
        .await
        .unwrap();
    assert_eq!(
        kinds(&stage),
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
    let second = &stage.events_named("iteration_started")[1];
    assert_eq!(
        (&second["iteration"], &second["tools"], &second["providers"]),
        (&json!(2), &json!(3), &json!(0))
    );
    let injected = &stage.events_named("tools_injected")[0];
    assert_eq!(
        (&injected["trigger"], &injected["names"]),
        (&json!("look"), &json!(["new"]))
    );
    let finished = &stage.events_named("finished")[0];
    assert_eq!(
        (&finished["stop"], &finished["iterations"], &finished["tool_calls"]),
        (&json!("answered"), &json!(2), &json!(1))
    );
}

#[tokio::test]
async fn an_observer_that_panics_is_dropped_and_the_run_continues() {
    let received = Arc::new(Mutex::new(0));
    let count = received.clone();
    let (builder, stage) = Stage::set([say("ok")]);
    let outcome = builder
        .observer(move |_: &Event, _: &Origin| {
            *count.lock().unwrap() += 1;
            panic!("broken observer")
        })
        .run("go")
        .await;
    assert_eq!(outcome.unwrap().text(), "ok");
    assert_eq!(*received.lock().unwrap_or_else(std::sync::PoisonError::into_inner), 1);
    assert_eq!(kinds(&stage).len(), 4);
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
    let (builder, stage) = Stage::set([call([("look", json!({}))]), say("ok")]);
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
    assert_eq!(traced, stage.events());
}
