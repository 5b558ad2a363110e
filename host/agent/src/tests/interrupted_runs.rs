//! Interrupted runs whose next turn or resume does not begin, because it is dropped, cancelled or refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::journal::{id, pay_tool, stopped_in_call_with};
use super::*;
use crate::Journal;
use toolwit_core::{EffectClass, Error};

/// A source whose first query does not end.
#[derive(Clone, Default)]
struct SlowSource {
    queries: Arc<AtomicUsize>,
    queried: Arc<Notify>,
}

#[async_trait]
impl ToolSource for SlowSource {
    fn name(&self) -> &str {
        "slow"
    }

    async fn tools(&self, _: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        if self.queries.fetch_add(1, Ordering::Relaxed) == 0 {
            self.queried.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(vec![echo("fetch")])
    }
}

impl SlowSource {
    fn groups(&self) -> ToolGroups {
        let config = "[groups.web]\nprovider = 'slow'\ntools = ['fetch']";
        ToolGroups::new()
            .with_source(self.clone())
            .with_config(GroupsConfig::parse(config).unwrap())
            .unwrap()
    }
}

/// A conversation whose run was interrupted in a call of `pay`, and whose role has tools of a slow source.
struct InterruptedConversation {
    conversation: Conversation,
    model: TestModel,
    source: SlowSource,
    /// The number of calls of `pay`.
    calls: Arc<Mutex<u32>>,
}

impl InterruptedConversation {
    async fn new() -> Self {
        let first_source = SlowSource {
            queries: Arc::new(AtomicUsize::new(1)),
            ..SlowSource::default()
        };
        let first_process = |builder: ConversationBuilder| builder.groups(first_source.groups()).role("web");
        let store = stopped_in_call_with(EffectClass::Read, first_process).await;
        let (builder, model) = TestModel::playing([reply("done")]);
        let (tool, calls) = pay_tool(EffectClass::Read, "Pays.");
        let source = SlowSource::default();
        let journal = Journal::open(&store, &id()).await.unwrap();
        let builder = builder.tools([tool]).groups(source.groups()).role("web");
        let conversation = builder.journal(journal).build().unwrap();
        Self {
            conversation,
            model,
            source,
            calls,
        }
    }

    /// Resumes the run, and checks that it ends with its call and with the tools of the role.
    async fn check_resume(mut self) {
        assert!(self.conversation.interrupted_run().is_some());
        let resumed = self.conversation.resume_run(CancellationToken::new()).await;
        assert_eq!(resumed.unwrap().unwrap().text(), "done");
        assert_eq!(tool_results(self.conversation.history()), ["paid"]);
        assert_valid(self.conversation.history());
        assert_eq!(*self.calls.lock().unwrap(), 1);
        assert_eq!(self.model.request(0).names, ["pay", "fetch"]);
        let resume_events = self.model.events_named("run_resumed");
        assert_eq!(resume_events.len(), 1);
        assert!(
            resume_events[0].get("removed").is_none() && resume_events[0].get("added").is_none(),
            "the same tools are declared: {}",
            resume_events[0]
        );
        assert!(self.conversation.interrupted_run().is_none());
    }
}

#[tokio::test]
async fn a_turn_that_is_dropped_while_a_source_is_queried_leaves_the_interrupted_run_resumable() {
    let mut interrupted = InterruptedConversation::new().await;
    let (messages, events) = (
        interrupted.conversation.history().to_vec(),
        interrupted.model.events().len(),
    );
    let mut dropped = Box::pin(interrupted.conversation.run("never mind"));
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert_eq!(interrupted.source.queries.load(Ordering::Relaxed), 1);
    assert_eq!(interrupted.model.events().len(), events, "no event is emitted");
    assert_eq!(
        interrupted.conversation.history(),
        messages,
        "the interrupted call stays open"
    );
    interrupted.check_resume().await;
}

#[tokio::test]
async fn a_turn_that_is_dropped_while_a_source_is_queried_does_not_begin() {
    let source = SlowSource::default();
    let (builder, model) = TestModel::playing([reply("Hello.")]);
    let mut conversation = builder.groups(source.groups()).role("web").build().unwrap();
    let mut dropped = Box::pin(conversation.run("one"));
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert!(model.events_named("finished").is_empty() && conversation.history().is_empty());
    assert_eq!(conversation.process().status(), ProcessStatus::Ready);
    conversation.run("two").await.unwrap();
    assert_eq!(model.events_named("turn_started")[0]["turn"], 1);
    assert_eq!(model.events_named("finished").len(), 1);
}

#[tokio::test]
async fn a_turn_with_an_unknown_role_leaves_the_interrupted_run_resumable() {
    let mut interrupted = InterruptedConversation::new().await;
    interrupted.source.queries.store(1, Ordering::Relaxed);
    let refused = interrupted.conversation.turn("go").role("mail").run().await;
    assert!(matches!(refused.unwrap_err().failure, RunFailure::Tool(_)));
    interrupted.check_resume().await;
}

#[tokio::test]
async fn a_resume_that_is_cancelled_or_dropped_while_a_source_is_queried_can_be_repeated() {
    let mut interrupted = InterruptedConversation::new().await;
    let cancel = CancellationToken::new();
    let queried = interrupted.source.queried.clone();
    let (cancelled, ()) = tokio::join!(interrupted.conversation.resume_run(cancel.clone()), async {
        queried.notified().await;
        cancel.cancel();
    });
    assert!(matches!(cancelled.unwrap().unwrap_err().failure, RunFailure::Cancelled));
    let again = interrupted.conversation.resume_run(cancel).await;
    assert!(
        matches!(again.unwrap().unwrap_err().failure, RunFailure::Cancelled),
        "the token is still cancelled"
    );
    interrupted.check_resume().await;

    let mut interrupted = InterruptedConversation::new().await;
    let mut dropped = Box::pin(interrupted.conversation.resume_run(CancellationToken::new()));
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    interrupted.check_resume().await;
}
