//! Questions about calls that outlive the process.

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Journal, JournalStore, MemoryJournalStore, RequestedApproval, SessionId, TraceEntry};
use toolwit_core::{Approval, ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Approvals, Approver};

fn id() -> SessionId {
    "s".parse().unwrap()
}

/// Announces that it was asked, and never answers.
struct Away(Arc<Notify>);

#[async_trait]
impl Approver for Away {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Returns a tool that writes, and its calls.
fn pay() -> (Arc<dyn Tool>, Arc<Mutex<Vec<i64>>>) {
    let amounts = Arc::new(Mutex::new(Vec::new()));
    let paid = amounts.clone();
    let pay = tool("pay", move |arguments, _| {
        paid.lock().unwrap().extend(arguments["amount"].as_i64());
        Ok(ToolResult::text("paid"))
    });
    (pay, amounts)
}

fn approvals(approver: impl Approver + 'static) -> Approvals {
    Approvals::new(ApprovalPolicy::default()).with_approver(approver)
}

/// Runs until a call waits for its approval, and suspends the run.
async fn suspended() -> MemoryJournalStore {
    let store = MemoryJournalStore::new();
    let asked = Arc::new(Notify::new());
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let (pay, amounts) = pay();
    let journal = Journal::create(&store, &id()).await.unwrap();
    let builder = builder.tools([pay]).approvals(approvals(Away(asked.clone())));
    let mut conversation = builder.journal(journal).build().unwrap();
    let suspension = conversation.suspension().unwrap();
    let suspended = async {
        asked.notified().await;
        suspension.suspend().await
    };
    tokio::select! {
        ended = conversation.run("pay") => panic!("it does not wait: {ended:?}"),
        suspended = suspended => suspended.unwrap(),
    }
    drop(conversation);
    assert!(amounts.lock().unwrap().is_empty());
    store
}

/// Opens the session in what could be another process.
async fn reopened(
    store: &MemoryJournalStore,
    approver: impl Approver + 'static,
) -> (Conversation, Arc<Mutex<Vec<i64>>>) {
    let (builder, _) = TestModel::playing([reply("done")]);
    let (pay, amounts) = pay();
    let journal = Journal::open(store, &id()).await.unwrap();
    let builder = builder.tools([pay]).approvals(approvals(approver));
    (builder.journal(journal).build().unwrap(), amounts)
}

fn pending(conversation: &Conversation) -> Vec<RequestedApproval> {
    let run = conversation.interrupted_run();
    run.map_or_else(Vec::new, |run| run.pending_approvals().to_vec())
}

#[tokio::test]
async fn a_question_is_pending_in_another_process_and_its_answer_decides() {
    for is_approved in [true, false] {
        let store = suspended().await;
        let entries = store.entries(&id()).await.unwrap();
        let is_end = |entry: &TraceEntry| matches!(entry.event, Event::Finished { .. });
        assert!(!entries.iter().any(is_end), "the run has not ended");
        let asked_again = Arc::new(Mutex::new(Vec::new()));
        let requests = asked_again.clone();
        let approver = move |request: &ApprovalRequest| {
            requests.lock().unwrap().push(request.clone());
            if is_approved {
                return Approval::Approved;
            }
            let reason = "too much".to_owned();
            Approval::Denied { reason }
        };
        let (mut conversation, amounts) = reopened(&store, approver).await;
        let questions = pending(&conversation);
        assert_eq!(questions.len(), 1);
        assert_eq!(questions[0].arguments["amount"], 5);
        let resumed = conversation
            .resume_run(CancellationToken::new())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(resumed.text(), "done");
        let paid = amounts.lock().unwrap().clone();
        assert_eq!(paid, if is_approved { vec![5] } else { vec![] });
        let result = &tool_results(conversation.history())[0];
        assert!(is_approved || result.contains("too much"), "{result}");
        assert_valid(conversation.history());
        {
            let again = asked_again.lock().unwrap();
            assert_eq!(again.len(), 1, "asked once");
            let (question, request) = (&questions[0], &again[0]);
            assert_eq!((&question.id, &question.digest), (&request.id, &request.digest));
            assert_eq!(question.arguments, request.arguments);
        }
        assert!(conversation.resume_run(CancellationToken::new()).await.is_none());
        drop(conversation);
        let (conversation, _) = reopened(&store, |_: &ApprovalRequest| Approval::Approved).await;
        assert!(conversation.interrupted_run().is_none(), "it is answered");
    }
}

#[tokio::test]
async fn a_question_is_stored_while_it_waits() {
    let store = MemoryJournalStore::new();
    let asked = Arc::new(Notify::new());
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let journal = Journal::create(&store, &id()).await.unwrap();
    let builder = builder.tools([pay().0]).approvals(approvals(Away(asked.clone())));
    let mut conversation = builder.journal(journal).build().unwrap();
    let is_question = |entry: &TraceEntry| matches!(entry.event, Event::ApprovalRequested(_));
    let stored = async {
        asked.notified().await;
        // The process may be killed at any time from now on.
        while !store.entries(&id()).await.unwrap().iter().any(is_question) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = conversation.run("pay") => panic!("it does not wait: {ended:?}"),
        () = stored => {}
    }
}

#[tokio::test]
async fn nothing_begins_after_a_suspension() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let (pay, amounts) = pay();
    let journal = Journal::create(&store, &id()).await.unwrap();
    let mut conversation = builder.tools([pay]).journal(journal).build().unwrap();
    conversation.suspension().unwrap().suspend().await.unwrap();
    let ended = conversation.run("pay").await.unwrap_err();
    assert!(ended.report().message.contains("suspended"), "{}", ended.report());
    assert!(amounts.lock().unwrap().is_empty());
    assert!(store.entries(&id()).await.unwrap().is_empty());
}
