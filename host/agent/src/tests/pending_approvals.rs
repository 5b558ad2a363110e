//! Approval questions that outlive the process of their run.

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::approvals::agency;
use super::*;
use crate::{
    Journal, JournalError, JournalStore, MemoryJournalStore, PendingApproval, RecordedApprovalRequest, SessionId,
    TraceEntry,
};
use toolwit_core::{
    Approval, ApprovalAnswer, ApprovalBasis, ApprovalPolicy, ApprovalRequest, Approvals, Approver, CallAccess,
    EffectClass, ToolDefinition, ToolExt,
};

fn id() -> SessionId {
    "s".parse().unwrap()
}

/// An approver that signals each question and never answers.
struct SilentApprover(Arc<Notify>);

#[async_trait]
impl Approver for SilentApprover {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Returns the tool `pay`, and the amounts that its calls paid.
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

/// Returns the store of a run that was suspended while a call waited for its approval.
async fn suspended_store() -> MemoryJournalStore {
    let store = MemoryJournalStore::new();
    let asked = Arc::new(Notify::new());
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let (pay, amounts) = pay();
    let journal = Journal::create(&store, &id()).await.unwrap();
    let builder = builder.tools([pay]).approvals(approvals(SilentApprover(asked.clone())));
    let mut conversation = builder.journal(journal).build().unwrap();
    let suspension = conversation.suspension().unwrap();
    let suspended = async {
        asked.notified().await;
        suspension.suspend().await
    };
    tokio::select! {
        ended = conversation.run("pay") => panic!("the run does not wait: {ended:?}"),
        suspended = suspended => suspended.unwrap(),
    }
    drop(conversation);
    assert!(amounts.lock().unwrap().is_empty());
    store
}

/// Opens the session as another process would.
async fn reopen(store: &MemoryJournalStore, approver: impl Approver + 'static) -> (Conversation, Arc<Mutex<Vec<i64>>>) {
    let (builder, _) = TestModel::playing([reply("done")]);
    let (pay, amounts) = pay();
    let journal = Journal::open(store, &id()).await.unwrap();
    let builder = builder.tools([pay]).approvals(approvals(approver));
    (builder.journal(journal).build().unwrap(), amounts)
}

fn pending(conversation: &Conversation) -> Vec<RecordedApprovalRequest> {
    let run = conversation.interrupted_run();
    run.map_or_else(Vec::new, |run| run.pending_approvals().to_vec())
}

#[tokio::test]
async fn a_question_is_pending_in_another_process_and_its_answer_decides() {
    for is_approved in [true, false] {
        let store = suspended_store().await;
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
        let (mut conversation, amounts) = reopen(&store, approver).await;
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
            let repeated = asked_again.lock().unwrap();
            assert_eq!(repeated.len(), 1, "asked once");
            let (question, request) = (&questions[0], &repeated[0]);
            assert_eq!((&question.id, &question.digest), (&request.id, &request.digest));
            assert_eq!(question.arguments, request.arguments);
        }
        assert!(conversation.resume_run(CancellationToken::new()).await.is_none());
        drop(conversation);
        let (conversation, _) = reopen(&store, |_: &ApprovalRequest| Approval::Approved).await;
        assert!(conversation.interrupted_run().is_none(), "the question is answered");
    }
}

#[tokio::test]
async fn a_question_is_stored_while_it_waits() {
    let store = MemoryJournalStore::new();
    let asked = Arc::new(Notify::new());
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let journal = Journal::create(&store, &id()).await.unwrap();
    let builder = builder
        .tools([pay().0])
        .approvals(approvals(SilentApprover(asked.clone())));
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
        ended = conversation.run("pay") => panic!("the run does not wait: {ended:?}"),
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

/// Waits until the session has an unanswered question, and returns the question.
async fn wait_for_question(store: &MemoryJournalStore) -> PendingApproval {
    loop {
        let pending = store.pending_approvals(&id()).await.unwrap();
        match pending.into_iter().find(|pending| pending.answer.is_none()) {
            Some(pending) => return pending,
            None => tokio::task::yield_now().await,
        }
    }
}

/// Returns the bases of the decisions about the calls of a session.
async fn bases(store: &MemoryJournalStore) -> Vec<ApprovalBasis> {
    let entries = store.entries(&id()).await.unwrap();
    let decided = entries.into_iter().filter_map(|entry| match entry.event {
        Event::ApprovalDecided(decided) => Some(decided.basis),
        _ => None,
    });
    decided.collect()
}

#[tokio::test]
async fn another_process_answers_while_the_run_waits() {
    let edit = json!({"amount": 3}).as_object().unwrap().clone();
    let answers = [
        (Approval::Approved, vec![5]),
        (Approval::Edited { arguments: edit }, vec![3]),
        (
            Approval::Denied {
                reason: "too much".to_owned(),
            },
            vec![],
        ),
    ];
    for (approval, expected) in answers {
        let store = MemoryJournalStore::new();
        let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("done")]);
        let (pay, amounts) = pay();
        let journal = Journal::create(&store, &id()).await.unwrap();
        let builder = builder
            .tools([pay])
            .approvals(approvals(SilentApprover(Arc::default())));
        let mut conversation = builder.journal(journal).build().unwrap();
        let answering = async {
            let number = wait_for_question(&store).await.number;
            store
                .answer_approval(&id(), number, approval.clone().into())
                .await
                .unwrap();
            let second = store.answer_approval(&id(), number, Approval::Approved.into()).await;
            assert!(matches!(second, Err(JournalError::Answered(..))), "{second:?}");
        };
        let (outcome, ()) = tokio::join!(conversation.run("pay"), answering);
        assert_eq!(outcome.unwrap().text(), "done");
        assert_eq!(*amounts.lock().unwrap(), expected);
        assert_eq!(bases(&store).await, [ApprovalBasis::Stored]);
        assert!(store.pending_approvals(&id()).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_comes_after_the_approver_does_not_count() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("done")]);
    let (pay, amounts) = pay();
    let journal = Journal::create(&store, &id()).await.unwrap();
    /// Denies the call when the test notifies it.
    struct NotifiedApprover(Arc<Notify>);
    #[async_trait]
    impl Approver for NotifiedApprover {
        async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
            self.0.notified().await;
            let reason = "the person was first".to_owned();
            Approval::Denied { reason }.into()
        }
    }
    let (decide, decision) = (Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
    let builder = builder
        .tools([pay])
        .approvals(approvals(NotifiedApprover(decide.clone())));
    let recorded_decision = decision.clone();
    let builder = builder.observer(move |event: &Event, _: &Origin| {
        if matches!(event, Event::ApprovalDecided(_)) {
            *recorded_decision.lock().unwrap() = Some(());
        }
    });
    let mut conversation = builder.journal(journal).build().unwrap();
    let answering = async {
        let number = wait_for_question(&store).await.number;
        decide.notify_one();
        while decision.lock().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        let late = store.answer_approval(&id(), number, Approval::Approved.into()).await;
        assert!(
            matches!(late, Err(JournalError::Answered(..) | JournalError::NotPending(..))),
            "{late:?}"
        );
    };
    let (outcome, ()) = tokio::join!(conversation.run("pay"), answering);
    outcome.unwrap();
    assert!(amounts.lock().unwrap().is_empty());
    assert_eq!(bases(&store).await, [ApprovalBasis::Approver]);
}

// attack: M4
#[tokio::test]
async fn a_stored_answer_is_used_by_the_next_process_for_exactly_its_call() {
    for has_changed in [false, true] {
        let store = suspended_store().await;
        let pending = wait_for_question(&store).await;
        store
            .answer_approval(&id(), pending.number, Approval::Approved.into())
            .await
            .unwrap();
        let (builder, _) = TestModel::playing([reply("done")]);
        let (pay, amounts) = pay();
        let pay = if has_changed {
            // With another effect class, the call is not the one that was approved.
            let class = EffectClass::Idempotent;
            Arc::new(ReclassifiedTool(pay, class)) as Arc<dyn Tool>
        } else {
            pay
        };
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let approver = move |_: &ApprovalRequest| {
            *count.lock().unwrap() += 1;
            let reason = "no".to_owned();
            Approval::Denied { reason }
        };
        let journal = Journal::open(&store, &id()).await.unwrap();
        let builder = builder.tools([pay]).approvals(approvals(approver));
        let mut conversation = builder.journal(journal).build().unwrap();
        let resumed = conversation.resume_run(CancellationToken::new()).await;
        assert_eq!(resumed.unwrap().unwrap().text(), "done");
        let expected = if has_changed { (vec![], 1) } else { (vec![5], 0) };
        assert_eq!((amounts.lock().unwrap().clone(), *asked.lock().unwrap()), expected);
    }
}

/// A tool with another effect class.
struct ReclassifiedTool(Arc<dyn Tool>, EffectClass);

#[async_trait]
impl Tool for ReclassifiedTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.0.call(arguments, context).await
    }

    async fn access(&self, _: &Arguments, _: &ToolContext) -> CallAccess {
        let mut access = CallAccess::declared(self.0.definition());
        access.effect.class = self.1;
        access
    }
}

#[tokio::test]
async fn questions_of_nested_calls_are_answered_by_another_process_while_they_wait() {
    for is_agent in [false, true] {
        let store = MemoryJournalStore::new();
        let arguments = if is_agent {
            json!({"task": "pay"})
        } else {
            json!({"amount": 7})
        };
        let outer = call([("clerk", arguments)]);
        let (builder, _) = TestModel::playing([outer, reply("done")]);
        let (pay, amounts) = pay();
        let journal = Journal::create(&store, &id()).await.unwrap();
        let builder = if is_agent {
            let (_, inner) = TestModel::playing([call([("pay", json!({"amount": 7}))]), reply("paid")]);
            builder.tool(AgenticTool::new("clerk", "Pays.").with_model(inner).with_tools([pay]))
        } else {
            let clerk: Arc<dyn Tool> = Arc::new(agency(false).with_name("clerk"));
            builder.tools([pay, clerk])
        };
        let builder = builder.approvals(approvals(SilentApprover(Arc::default())));
        let mut conversation = builder.journal(journal).build().unwrap();
        let answering = async {
            let pending = wait_for_question(&store).await;
            assert_eq!(pending.question.callers.len(), 1);
            let approved = Approval::Approved.into();
            store.answer_approval(&id(), pending.number, approved).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(conversation.run("go"), answering);
        outcome.unwrap();
        assert_eq!(*amounts.lock().unwrap(), [7]);
    }
}
