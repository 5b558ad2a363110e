//! Approval questions that are still pending after the process of their run has ended.

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::approvals::{PassedContext, payer};
use super::journal::session_id;
use super::*;
use crate::{
    Journal, JournalError, JournalStore, MemoryJournalStore, PendingApproval, RecordedApprovalRequest, TraceEntry,
};
use toolwit_core::{
    Approval, ApprovalAnswer, ApprovalBasis, ApprovalPolicy, ApprovalRequest, Approvals, Approver, CallAccess,
    EffectClass, ToolDefinition, ToolExt,
};

/// An approver that notifies the test of each question and never answers.
struct SilentApprover(Arc<Notify>);

#[async_trait]
impl Approver for SilentApprover {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Returns the tool `pay`, and the list to which its calls append the paid amounts.
fn pay_tool() -> (Arc<dyn Tool>, Arc<Mutex<Vec<i64>>>) {
    let amounts = Arc::new(Mutex::new(Vec::new()));
    let paid_amounts = amounts.clone();
    let pay = tool("pay", move |arguments, _| {
        paid_amounts.lock().unwrap().extend(arguments["amount"].as_i64());
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
    let question_asked = Arc::new(Notify::new());
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let (pay, amounts) = pay_tool();
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let builder = builder
        .tools([pay])
        .approvals(approvals(SilentApprover(question_asked.clone())));
    let mut conversation = builder.journal(journal).build().unwrap();
    let suspension = conversation.suspension().unwrap();
    let suspend = async {
        question_asked.notified().await;
        suspension.suspend().await
    };
    tokio::select! {
        result = conversation.run("pay") => panic!("the run does not wait for the approval: {result:?}"),
        suspended = suspend => suspended.unwrap(),
    }
    let again = suspension.suspend().await.unwrap_err();
    assert!(matches!(again, JournalError::Suspended(_)), "{again}");
    drop(conversation);
    assert!(amounts.lock().unwrap().is_empty());
    store
}

/// Opens the session in a new conversation, as another process would. Returns the conversation and the amounts that it
/// pays.
async fn reopen(store: &MemoryJournalStore, approver: impl Approver + 'static) -> (Conversation, Arc<Mutex<Vec<i64>>>) {
    let (builder, _) = TestModel::playing([reply("done")]);
    let (pay, amounts) = pay_tool();
    let journal = Journal::open(store, &session_id()).await.unwrap();
    let builder = builder.tools([pay]).approvals(approvals(approver));
    (builder.journal(journal).build().unwrap(), amounts)
}

fn pending_requests(conversation: &Conversation) -> Vec<RecordedApprovalRequest> {
    let run = conversation.interrupted_run();
    run.map_or_else(Vec::new, |run| run.pending_approvals().to_vec())
}

#[tokio::test]
async fn a_pending_question_is_asked_again_in_another_process_and_the_answer_decides() {
    for is_approved in [true, false] {
        let store = suspended_store().await;
        let entries = store.entries(&session_id()).await.unwrap();
        let is_run_end = |entry: &TraceEntry| matches!(entry.event, Event::Finished { .. });
        assert!(!entries.iter().any(is_run_end), "the run has not ended");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded_requests = requests.clone();
        let approver = move |request: &ApprovalRequest| {
            recorded_requests.lock().unwrap().push(request.clone());
            if is_approved {
                return Approval::Approved;
            }
            let reason = "too much".to_owned();
            Approval::Denied { reason }
        };
        let (mut conversation, amounts) = reopen(&store, approver).await;
        let questions = pending_requests(&conversation);
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
            let requests = requests.lock().unwrap();
            assert_eq!(requests.len(), 1, "the approver is asked once");
            let (question, request) = (&questions[0], &requests[0]);
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
async fn a_question_is_stored_before_it_is_answered() {
    let store = MemoryJournalStore::new();
    let question_asked = Arc::new(Notify::new());
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let builder = builder
        .tools([pay_tool().0])
        .approvals(approvals(SilentApprover(question_asked.clone())));
    let mut conversation = builder.journal(journal).build().unwrap();
    let is_question = |entry: &TraceEntry| matches!(entry.event, Event::ApprovalRequested(_));
    let wait_until_stored = async {
        question_asked.notified().await;
        // The process may be killed while the approver decides, so the journal must store the question now.
        while !store.entries(&session_id()).await.unwrap().iter().any(is_question) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        result = conversation.run("pay") => panic!("the run does not wait for the approval: {result:?}"),
        () = wait_until_stored => {}
    }
}

#[tokio::test]
async fn a_run_after_a_suspension_fails_and_records_nothing() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("never")]);
    let (pay, amounts) = pay_tool();
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let mut conversation = builder.tools([pay]).journal(journal).build().unwrap();
    conversation.suspension().unwrap().suspend().await.unwrap();
    let error = conversation.run("pay").await.unwrap_err();
    assert!(error.report().message.contains("suspended"), "{}", error.report());
    assert!(amounts.lock().unwrap().is_empty());
    assert!(store.entries(&session_id()).await.unwrap().is_empty());
}

/// Waits until the session has an unanswered question, and returns the question.
async fn wait_for_question(store: &MemoryJournalStore) -> PendingApproval {
    loop {
        let pending = store.pending_approvals(&session_id()).await.unwrap();
        match pending.into_iter().find(|pending| pending.answer.is_none()) {
            Some(pending) => return pending,
            None => tokio::task::yield_now().await,
        }
    }
}

/// Returns the basis of each approval decision in a session.
async fn decision_bases(store: &MemoryJournalStore) -> Vec<ApprovalBasis> {
    let entries = store.entries(&session_id()).await.unwrap();
    let bases = entries.into_iter().filter_map(|entry| match entry.event {
        Event::ApprovalDecided(decision) => Some(decision.basis),
        _ => None,
    });
    bases.collect()
}

#[tokio::test]
async fn a_stored_answer_decides_while_the_run_waits() {
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
        let (pay, amounts) = pay_tool();
        let journal = Journal::create(&store, &session_id()).await.unwrap();
        let builder = builder
            .tools([pay])
            .approvals(approvals(SilentApprover(Arc::default())));
        let mut conversation = builder.journal(journal).build().unwrap();
        let answering = async {
            let number = wait_for_question(&store).await.number;
            store
                .answer_approval(&session_id(), number, approval.clone().into())
                .await
                .unwrap();
            let second = store
                .answer_approval(&session_id(), number, Approval::Approved.into())
                .await;
            assert!(matches!(second, Err(JournalError::Answered(..))), "{second:?}");
        };
        let (outcome, ()) = tokio::join!(conversation.run("pay"), answering);
        assert_eq!(outcome.unwrap().text(), "done");
        assert_eq!(*amounts.lock().unwrap(), expected);
        assert_eq!(decision_bases(&store).await, [ApprovalBasis::Stored]);
        assert!(store.pending_approvals(&session_id()).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_stored_answer_after_the_decision_of_the_approver_is_refused() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([call([("pay", json!({"amount": 5}))]), reply("done")]);
    let (pay, amounts) = pay_tool();
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    /// Denies the call when the test notifies it.
    struct NotifiedApprover(Arc<Notify>);
    #[async_trait]
    impl Approver for NotifiedApprover {
        async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
            self.0.notified().await;
            let reason = "the approver decided first".to_owned();
            Approval::Denied { reason }.into()
        }
    }
    let (decide, has_decided) = (Arc::new(Notify::new()), Arc::new(Mutex::new(false)));
    let builder = builder
        .tools([pay])
        .approvals(approvals(NotifiedApprover(decide.clone())));
    let observed_decision = has_decided.clone();
    let builder = builder.observer(move |event: &Event, _: &Origin| {
        if matches!(event, Event::ApprovalDecided(_)) {
            *observed_decision.lock().unwrap() = true;
        }
    });
    let mut conversation = builder.journal(journal).build().unwrap();
    let answering = async {
        let number = wait_for_question(&store).await.number;
        decide.notify_one();
        while !*has_decided.lock().unwrap() {
            tokio::task::yield_now().await;
        }
        let late = store
            .answer_approval(&session_id(), number, Approval::Approved.into())
            .await;
        assert!(
            matches!(late, Err(JournalError::Answered(..) | JournalError::NotPending(..))),
            "{late:?}"
        );
    };
    let (outcome, ()) = tokio::join!(conversation.run("pay"), answering);
    outcome.unwrap();
    assert!(amounts.lock().unwrap().is_empty());
    assert_eq!(decision_bases(&store).await, [ApprovalBasis::Approver]);
}

// attack: M4
#[tokio::test]
async fn a_stored_answer_is_used_by_the_next_process_for_exactly_its_call() {
    for is_reclassified in [false, true] {
        let store = suspended_store().await;
        let pending = wait_for_question(&store).await;
        store
            .answer_approval(&session_id(), pending.number, Approval::Approved.into())
            .await
            .unwrap();
        let (builder, _) = TestModel::playing([reply("done")]);
        let (pay, amounts) = pay_tool();
        let pay = if is_reclassified {
            // The stored approval does not apply to a call with another effect class.
            let class = EffectClass::Idempotent;
            Arc::new(ReclassifiedTool(pay, class)) as Arc<dyn Tool>
        } else {
            pay
        };
        let question_count = Arc::new(Mutex::new(0));
        let counter = question_count.clone();
        let approver = move |_: &ApprovalRequest| {
            *counter.lock().unwrap() += 1;
            let reason = "no".to_owned();
            Approval::Denied { reason }
        };
        let journal = Journal::open(&store, &session_id()).await.unwrap();
        let builder = builder.tools([pay]).approvals(approvals(approver));
        let mut conversation = builder.journal(journal).build().unwrap();
        let resumed = conversation.resume_run(CancellationToken::new()).await;
        assert_eq!(resumed.unwrap().unwrap().text(), "done");
        let expected = if is_reclassified { (vec![], 1) } else { (vec![5], 0) };
        assert_eq!(
            (amounts.lock().unwrap().clone(), *question_count.lock().unwrap()),
            expected
        );
    }
}

/// A decorator that changes the effect class of a tool.
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
async fn a_stored_answer_decides_a_nested_call_while_the_run_waits() {
    for is_agent in [false, true] {
        let store = MemoryJournalStore::new();
        let arguments = if is_agent {
            json!({"task": "pay"})
        } else {
            json!({"amount": 7})
        };
        let outer = call([("clerk", arguments)]);
        let (builder, _) = TestModel::playing([outer, reply("done")]);
        let (pay, amounts) = pay_tool();
        let journal = Journal::create(&store, &session_id()).await.unwrap();
        let builder = if is_agent {
            let (_, inner) = TestModel::playing([call([("pay", json!({"amount": 7}))]), reply("paid")]);
            builder.tool(AgenticTool::new("clerk", "Pays.").with_model(inner).with_tools([pay]))
        } else {
            let clerk: Arc<dyn Tool> = Arc::new(payer(PassedContext::Received).with_name("clerk"));
            builder.tools([pay, clerk])
        };
        let builder = builder.approvals(approvals(SilentApprover(Arc::default())));
        let mut conversation = builder.journal(journal).build().unwrap();
        let answering = async {
            let pending = wait_for_question(&store).await;
            assert_eq!(pending.question.callers.len(), 1);
            let approved = Approval::Approved.into();
            store
                .answer_approval(&session_id(), pending.number, approved)
                .await
                .unwrap();
        };
        let (outcome, ()) = tokio::join!(conversation.run("go"), answering);
        outcome.unwrap();
        assert_eq!(*amounts.lock().unwrap(), [7]);
    }
}
