//! Interrupted runs whose next turn or resume does not begin, because it is dropped, cancelled or refused.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::journal::{pay_tool, session_id, store_of_interrupted_run_with};
use super::*;
use crate::Journal;
use toolwit_core::{EffectClass, Error};

/// A source of tools whose first query does not end.
#[derive(Clone, Default)]
struct SlowSource {
    query_count: Arc<AtomicUsize>,
    /// Is notified when the first query starts.
    first_query_started: Arc<Notify>,
}

#[async_trait]
impl ToolSource for SlowSource {
    fn name(&self) -> &str {
        "slow"
    }

    async fn tools(&self, _: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        if self.query_count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first_query_started.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(vec![echo("fetch")])
    }
}

impl SlowSource {
    /// Makes all later queries end, as if the first query had already started.
    fn skip_first_query(&self) {
        self.query_count.store(1, Ordering::Relaxed);
    }

    /// Returns tool groups in which the role `web` has the tool of this source.
    fn groups(&self) -> ToolGroups {
        let config = "[groups.web]\nprovider = 'slow'\ntools = ['fetch']";
        ToolGroups::new()
            .with_source(self.clone())
            .with_config(GroupsConfig::parse(config).unwrap())
            .unwrap()
    }
}

/// A conversation whose run was interrupted in a call of `pay`, and whose role `web` has a tool of a [`SlowSource`].
struct InterruptedConversation {
    conversation: Conversation,
    model: TestModel,
    source: SlowSource,
    /// The number of calls of `pay` in this process.
    call_count: Arc<Mutex<u32>>,
}

impl InterruptedConversation {
    async fn new() -> Self {
        let first_source = SlowSource::default();
        first_source.skip_first_query();
        let configure = |builder: ConversationBuilder| builder.groups(first_source.groups()).role("web");
        let store = store_of_interrupted_run_with(EffectClass::Read, configure).await;
        let (builder, model) = TestModel::playing([reply("done")]);
        let (tool, call_count) = pay_tool(EffectClass::Read, "Pays.");
        let source = SlowSource::default();
        let journal = Journal::open(&store, &session_id()).await.unwrap();
        let builder = builder.tools([tool]).groups(source.groups()).role("web");
        let conversation = builder.journal(journal).build().unwrap();
        Self {
            conversation,
            model,
            source,
            call_count,
        }
    }

    /// Resumes the run. Checks that its interrupted call runs once and that the tools of the role are declared.
    async fn check_resume(mut self) {
        assert!(self.conversation.interrupted_run().is_some());
        let resumed = self.conversation.resume_run(CancellationToken::new()).await;
        assert_eq!(resumed.unwrap().unwrap().text(), "done");
        assert_eq!(tool_results(self.conversation.history()), ["paid"]);
        assert_valid(self.conversation.history());
        assert_eq!(*self.call_count.lock().unwrap(), 1);
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
    let (messages, event_count) = (
        interrupted.conversation.history().to_vec(),
        interrupted.model.events().len(),
    );
    let mut dropped = Box::pin(interrupted.conversation.run("never mind"));
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    assert_eq!(interrupted.source.query_count.load(Ordering::Relaxed), 1);
    assert_eq!(interrupted.model.events().len(), event_count, "no event is emitted");
    assert_eq!(
        interrupted.conversation.history(),
        messages,
        "the interrupted call still has no result"
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
    interrupted.source.skip_first_query();
    let refused = interrupted.conversation.turn("go").role("mail").run().await;
    assert!(matches!(refused.unwrap_err().failure, RunFailure::Tool(_)));
    interrupted.check_resume().await;
}

#[tokio::test]
async fn a_resume_that_is_cancelled_or_dropped_while_a_source_is_queried_can_be_repeated() {
    let mut interrupted = InterruptedConversation::new().await;
    let cancel = CancellationToken::new();
    let first_query_started = interrupted.source.first_query_started.clone();
    let (cancelled, ()) = tokio::join!(interrupted.conversation.resume_run(cancel.clone()), async {
        first_query_started.notified().await;
        cancel.cancel();
    });
    assert!(matches!(cancelled.unwrap().unwrap_err().failure, RunFailure::Cancelled));
    let cancelled_again = interrupted.conversation.resume_run(cancel).await;
    assert!(
        matches!(cancelled_again.unwrap().unwrap_err().failure, RunFailure::Cancelled),
        "the token is still cancelled"
    );
    interrupted.check_resume().await;

    let mut interrupted = InterruptedConversation::new().await;
    let mut dropped = Box::pin(interrupted.conversation.resume_run(CancellationToken::new()));
    assert!(futures::poll!(&mut dropped).is_pending());
    drop(dropped);
    interrupted.check_resume().await;
}
