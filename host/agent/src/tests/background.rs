//! Background calls and their late results.

use tokio::sync::oneshot;

use super::log::RecordedLog;
use super::*;
use toolwit_core::{Artifact, BackgroundTask, NativeEntity, NoArguments, Signal};
use tracing::Level;

/// Returns a tool that answers at once, and delivers a late result when the test sends the result. Each call uses the
/// next receiver.
fn slow(result_receivers: Vec<oneshot::Receiver<ToolResult>>) -> Arc<dyn Tool> {
    let receivers = Arc::new(Mutex::new(VecDeque::from(result_receivers)));
    tool("slow", move |_, context| {
        let receiver = receivers.lock().unwrap().pop_front().unwrap();
        let task = context.background_task()?;
        task.spawn(async move { Ok(receiver.await.unwrap_or_else(|_| ToolResult::error("the test gave up"))) });
        Ok(ToolResult::background("started"))
    })
}

/// Returns the names of the roles of the messages.
fn role_names(history: &[Message]) -> Vec<&'static str> {
    let role = |message: &Message| match message.role {
        Role::System { .. } => "system",
        Role::User { .. } => "user",
        Role::Assistant { .. } => "assistant",
        Role::Tool { .. } => "tool",
        #[allow(unreachable_patterns)]
        _ => "other",
    };
    history.iter().map(role).collect()
}

// accept: 18, accept: 85
#[tokio::test]
async fn a_late_result_wakes_an_idle_conversation() {
    let log = RecordedLog::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let (result_sender, result_receiver) = oneshot::channel();
    let (builder, model) = TestModel::playing([
        call([("slow", json!({"n": 1}))]),
        reply("It is on its way."),
        reply("It is 42."),
    ]);
    let mut conversation = builder.tools([slow(vec![result_receiver])]).build().unwrap();
    assert_eq!(conversation.run("go").await.unwrap().text(), "It is on its way.");
    assert_eq!(conversation.background_calls(), 1);
    let is_background_end = |line: &String| line.contains("a tool call ended") && line.contains("is_background=true");
    assert!(
        log.lines_at(Level::DEBUG).iter().any(is_background_end),
        "{:?}",
        log.lines()
    );
    result_sender.send(ToolResult::text("42")).unwrap();
    let woken = conversation.wake().await.unwrap().unwrap();
    assert_eq!(woken.text(), "It is 42.");
    let request = model.request(2);
    assert_eq!(
        role_names(&request.messages),
        ["user", "assistant", "tool", "assistant", "assistant", "tool"]
    );
    let late_result = request.messages[5].content();
    assert!(
        late_result.starts_with("[result of the background call ") && late_result.ends_with("]\n42"),
        "{late_result}"
    );
    let first_arguments = |message: usize| &request.messages[message].tool_calls()[0].arguments;
    assert_eq!(first_arguments(4), first_arguments(1));
    assert_valid(conversation.history());
    let events = model.events_named("late_result");
    assert_eq!(
        (&events[0]["call"], &events[0]["name"]),
        (&json!("1-0"), &json!("slow"))
    );
    assert_eq!(conversation.background_calls(), 0);
    assert!(conversation.wake().await.is_none(), "no background call is open");
}

// accept: 85
#[tokio::test]
async fn a_late_result_is_delivered_before_the_next_inference() {
    let (result_sender, result_receiver) = oneshot::channel();
    let result_sender = Mutex::new(Some(result_sender));
    let finish = tool("finish", move |_, _| {
        result_sender
            .lock()
            .unwrap()
            .take()
            .unwrap()
            .send(ToolResult::text("42"))
            .unwrap();
        Ok(ToolResult::text("finished"))
    });
    let wait = NativeTool::new("wait", "", json!({"type": "object"}), |_, _| async {
        tokio::task::yield_now().await;
        Ok(ToolResult::text("waited"))
    });
    let steps = [
        call([("slow", json!({}))]),
        call([("finish", json!({}))]),
        call([("wait", json!({}))]),
        reply("Done."),
    ];
    let (builder, model) = TestModel::playing(steps);
    let tools = [slow(vec![result_receiver]), finish, Arc::new(wait.unwrap())];
    let mut conversation = builder.tools(tools).build().unwrap();
    conversation.run("go").await.unwrap();
    let late_result_count = |inference: usize| {
        model
            .request(inference)
            .messages
            .iter()
            .filter(|message| message.content().ends_with("\n42"))
            .count()
    };
    assert_eq!(late_result_count(1), 0, "the late result has not arrived");
    assert_eq!(late_result_count(3), 1, "the late result is delivered once");
    assert!(conversation.wake().await.is_none());
    assert_valid(conversation.history());
}

// accept: 85
#[tokio::test]
async fn a_late_result_adds_tools_and_artifacts_like_any_result() {
    struct UserMessages(Mutex<Vec<String>>);
    impl toolwit_core::OutputSink for UserMessages {
        fn progress(&self, _: &str) {}
        fn communicate(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }
    let (result_sender, result_receiver) = oneshot::channel();
    let (builder, model) = TestModel::playing([
        call([("slow", json!({}))]),
        reply("Wait."),
        call([("cart_c1_count", json!({}))]),
        reply("0."),
    ]);
    let user = Arc::new(UserMessages(Mutex::default()));
    let mut conversation = builder
        .tools([slow(vec![result_receiver])])
        .output(user.clone())
        .build()
        .unwrap();
    conversation.run("go").await.unwrap();
    let cart = NativeEntity::new("cart", Arc::new(())).with_id("c-1").method(
        "count",
        "Counts.",
        |_, _: NoArguments, _| async { Ok::<_, String>(0) },
    );
    let late_result = ToolResult::text("a cart")
        .with_user_text("Your cart is there.")
        .with_artifact(Artifact::new("Cart", json!({"id": "c-1"})))
        .with_provider(Arc::new(cart.unwrap()));
    result_sender.send(late_result).unwrap();
    let woken = conversation.wake().await.unwrap().unwrap();
    assert_eq!(woken.text(), "0.");
    assert_eq!(
        woken.injected.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["cart_c1_count"]
    );
    assert_eq!(woken.artifacts[0].kind, "Cart");
    assert_eq!(*user.0.lock().unwrap(), ["Your cart is there."]);
    assert_eq!(model.events_named("entity_discovered").len(), 1);
}

// accept: 85
#[tokio::test]
async fn a_dropped_background_task_delivers_an_error() {
    let task: Arc<Mutex<Option<BackgroundTask>>> = Arc::default();
    let stored_task = task.clone();
    let forgetful = tool("forgetful", move |_, context| {
        *stored_task.lock().unwrap() = Some(context.background_task()?);
        assert!(
            context.background_task().is_err(),
            "a call can create only one background task"
        );
        Ok(ToolResult::background("started"))
    });
    let (builder, _) = TestModel::playing([call([("forgetful", json!({}))]), reply("Wait."), reply("It failed.")]);
    let mut conversation = builder.tools([forgetful]).build().unwrap();
    conversation.run("go").await.unwrap();
    drop(task.lock().unwrap().take());
    let woken = conversation.wake().await.unwrap().unwrap();
    assert!(tool_results(&woken.history)[1].contains("ended without a result"));
}

#[tokio::test]
async fn a_call_with_a_final_result_does_not_continue_in_the_background() {
    let quick = tool("quick", |_, context| {
        drop(context.background_task()?);
        Ok(ToolResult::text("here it is"))
    });
    let (builder, _) = TestModel::playing([call([("quick", json!({}))]), reply("Fine.")]);
    let mut conversation = builder.tools([quick]).build().unwrap();
    conversation.run("go").await.unwrap();
    assert_eq!(conversation.background_calls(), 0);
    assert!(conversation.wake().await.is_none());
}

// accept: 85, accept: 127
#[tokio::test]
async fn a_background_task_outside_a_conversation_is_refused() {
    let context = ToolContext::new();
    let error = context.background_task().err().unwrap();
    assert!(error.to_string().contains("needs a conversation"), "{error}");
}

// accept: 133
#[tokio::test]
async fn a_background_task_ends_with_the_conversation_not_with_the_run() {
    let (token_sender, mut token_receiver) = tokio::sync::mpsc::unbounded_channel();
    let (drop_sender, drop_receiver) = oneshot::channel::<()>();
    let senders = Mutex::new(Some((token_sender, drop_sender)));
    let long = tool("long", move |_, context| {
        let (token_sender, drop_sender) = senders.lock().unwrap().take().unwrap();
        let task = context.background_task()?;
        let cancel = task.context().cancel_token().clone();
        task.spawn(async move {
            // The sender is dropped when this future is dropped.
            let _drop_sender = drop_sender;
            token_sender.send(cancel).ok();
            std::future::pending().await
        });
        Ok(ToolResult::background("started"))
    });
    let (builder, _) = TestModel::playing([call([("long", json!({}))]), reply("Wait.")]);
    let mut conversation = builder.tools([long]).build().unwrap();
    conversation.run("go").await.unwrap();
    let cancel = token_receiver.recv().await.unwrap();
    assert!(!cancel.is_cancelled(), "the run has ended, and the task continues");
    drop(conversation);
    assert!(cancel.is_cancelled());
    assert!(drop_receiver.await.is_err(), "the task was dropped");
}

// accept: 85, accept: 86
#[tokio::test]
async fn a_signal_in_a_late_result_stops_the_run() {
    let (result_sender, result_receiver) = oneshot::channel();
    let (builder, model) = TestModel::playing([call([("slow", json!({}))]), reply("Wait.")]);
    let mut conversation = builder.tools([slow(vec![result_receiver])]).build().unwrap();
    conversation.run("go").await.unwrap();
    result_sender
        .send(ToolResult::from(Signal::ask_user("Which?")))
        .unwrap();
    let woken = conversation.wake().await.unwrap().unwrap();
    assert_eq!((woken.stop, woken.text()), (StopReason::UserInputRequired, "Which?"));
    assert_eq!(model.request_count(), 2);
    assert_valid(conversation.history());
}
