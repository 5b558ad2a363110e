//! Approval of calls of the model, of tools and of agents, with every kind of answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::injection::Facade;
use toolwit_core::{
    Approval, ApprovalAnswer, ApprovalMode, ApprovalPolicy, ApprovalRequest, ApprovalRule, ApprovalScope, Approvals,
    Approver, EffectClass, NativeEntity, NoArguments, ToolDefinition, ToolId,
};

/// A bank with a tool `pay`, whose calls it counts. The tool has the default effect class, so that its calls need an
/// approval.
#[derive(Clone, Default)]
struct Bank(Arc<AtomicUsize>);

impl Bank {
    fn pay(&self) -> Arc<dyn Tool> {
        let calls = self.0.clone();
        tool("pay", move |arguments, _| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(ToolResult::text(format!("paid {}", arguments["amount"])))
        })
    }

    fn payment_count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// An approver that records the requests, and gives its answers in order. When it has no answer left, it approves.
#[derive(Clone, Default)]
struct Person {
    requests: Arc<Mutex<Vec<ApprovalRequest>>>,
    answers: Arc<Mutex<VecDeque<ApprovalAnswer>>>,
}

impl Person {
    fn with_answers(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            ..Self::default()
        }
    }

    fn requests(&self) -> Vec<ApprovalRequest> {
        self.requests.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for Person {
    async fn approve(&self, request: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        self.requests.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| Approval::Approved.into())
    }
}

fn denial(reason: &str) -> ApprovalAnswer {
    let reason = reason.to_owned();
    Approval::Denied { reason }.into()
}

fn approvals_by(person: &Person) -> Approvals {
    Approvals::new(ApprovalPolicy::default()).with_approver(person.clone())
}

/// Runs a conversation whose calls need the approval of a person.
async fn run_with_approver(person: &Person, builder: ConversationBuilder) -> RunOutcome {
    let builder = builder.approvals(approvals_by(person));
    builder.run("go").await.unwrap()
}

fn call_pay(amount: u32) -> Step {
    call([("pay", json!({ "amount": amount }))])
}

/// The context that a [`Payer`] passes to the tool `pay`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PassedContext {
    /// The context that the [`Payer`] received.
    Received,
    Empty,
}

/// A tool `payer` that calls the tool `native#pay`.
pub(super) struct Payer {
    definition: ToolDefinition,
    passed_context: PassedContext,
}

pub(super) fn payer(passed_context: PassedContext) -> Payer {
    let definition = ToolDefinition::new(ToolId::native("payer"), "payer", "", json!({"type": "object"}));
    Payer {
        definition: definition.with_effect(EffectClass::Read),
        passed_context,
    }
}

#[async_trait]
impl Tool for Payer {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let empty_context = ToolContext::new();
        let context_for_pay = match self.passed_context {
            PassedContext::Received => context,
            PassedContext::Empty => &empty_context,
        };
        context
            .tools()
            .unwrap()
            .call_tool("native#pay", arguments, context_for_pay)
            .await
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn denied_write_does_not_run_and_the_model_reads_the_reason() {
    let bank = Bank::default();
    let person = Person::with_answers([denial("too much"), Approval::Approved.into()]);
    let (builder, model) = TestModel::playing([call_pay(100), call_pay(1), reply("ok")]);
    let outcome = run_with_approver(&person, builder.tools([bank.pay()])).await;
    assert_valid(&outcome.history);
    let results = tool_results(&outcome.history);
    assert!(results[0].contains("not approved: too much"), "{}", results[0]);
    assert_eq!((results[1], bank.payment_count()), ("paid 1", 1));
    let names: Vec<_> = model
        .events()
        .into_iter()
        .map(|event| {
            serde_json::to_value(event).unwrap()["event"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .filter(|name| name.starts_with("approval") || name.starts_with("tool_") || name == "call_refused")
        .collect();
    assert_eq!(
        names,
        [
            "approval_requested",
            "approval_decided",
            "call_refused",
            "approval_requested",
            "approval_decided",
            "tool_started",
            "tool_finished"
        ],
        "a call starts only after its decision"
    );
}

#[tokio::test]
async fn read_needs_no_approval_and_a_write_without_an_approver_is_refused() {
    let bank = Bank::default();
    let look = NativeTool::new("look", "", json!({"type": "object"}), |_, _| async {
        Ok(ToolResult::text("seen"))
    });
    let look = look.unwrap().with_effect(EffectClass::Read);
    let (builder, model) =
        TestModel::playing([call([("look", json!({})), ("pay", json!({"amount": 1}))]), reply("ok")]);
    let builder = builder.tool(look).tools([bank.pay()]).approvals(Approvals::default());
    let outcome = builder.run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[0], "seen");
    assert!(results[1].contains("no person can be asked"), "{}", results[1]);
    assert_eq!(bank.payment_count(), 0);
    assert_eq!(model.events_named("approval_decided")[0]["decision"], "unanswered");
}

#[tokio::test]
async fn nested_call_needs_an_approval_that_names_its_callers_whatever_context_it_has() {
    for passed_context in [PassedContext::Received, PassedContext::Empty] {
        let (bank, person) = (Bank::default(), Person::with_answers([denial("no")]));
        let (builder, _) = TestModel::playing([call([("payer", json!({"amount": 7}))]), reply("ok")]);
        let builder = builder.tool(payer(passed_context)).tools([bank.pay()]);
        let outcome = run_with_approver(&person, builder).await;
        assert!(
            tool_results(&outcome.history)[0].contains("not approved: no"),
            "{passed_context:?}"
        );
        assert_eq!(bank.payment_count(), 0);
        let requests = person.requests();
        assert_eq!((requests.len(), requests[0].tool.as_str()), (1, "native#pay"));
        assert_eq!(requests[0].arguments["amount"], 7);
        assert_eq!(requests[0].callers, [ToolId::native("payer")]);
    }
}

#[tokio::test]
async fn calls_of_agents_need_the_approval_of_the_outer_conversation() {
    let (bank, person) = (Bank::default(), Person::with_answers([denial("no")]));
    let (_, agent_model) = TestModel::playing([call_pay(5), reply("done")]);
    let agent = AgenticTool::new("clerk", "Pays.")
        .with_model(agent_model)
        .with_tools([bank.pay()]);
    let (builder, _) = TestModel::playing([call([("clerk", json!({"task": "pay"}))]), reply("ok")]);
    run_with_approver(&person, builder.tool(agent)).await;
    let requests = person.requests();
    assert_eq!(
        (requests.len(), bank.payment_count()),
        (1, 0),
        "the call of the agent itself needs no approval"
    );
    assert_eq!(requests[0].tool, ToolId::native("pay"));
    assert_eq!(requests[0].callers, [ToolId::native("clerk")]);
}

#[tokio::test]
async fn tools_behind_facades_and_methods_of_entities_need_an_approval() {
    let (bank, person) = (Bank::default(), Person::with_answers([denial("no"), denial("no")]));
    let facade = Facade::builder("bank", "Pays.").tools([bank.pay()]).build().unwrap();
    let find = tool("find", |_, _| {
        let customer = NativeEntity::new("customer", Arc::new(())).with_id("c-1");
        let customer = customer.method("delete", "Deletes.", |_, _: NoArguments, _| async {
            Ok::<_, String>("gone")
        });
        Ok(ToolResult::text("found").with_provider(Arc::new(customer.unwrap())))
    });
    let steps = [
        call([("bank", json!({}))]),
        call_pay(1),
        call([("find", json!({}))]),
        call([("customer_c1_delete", json!({}))]),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let policy = ApprovalPolicy::default().with_rule(ApprovalRule::new("native#find", ApprovalMode::Never));
    let approvals = Approvals::new(policy).with_approver(person.clone());
    let outcome = builder
        .tool(facade)
        .tools([find])
        .approvals(approvals)
        .run("go")
        .await
        .unwrap();
    let results = tool_results(&outcome.history);
    assert!(
        results[1].contains("not approved") && results[3].contains("not approved"),
        "{results:?}"
    );
    let tools: Vec<_> = person
        .requests()
        .iter()
        .map(|request| request.tool.to_string())
        .collect();
    assert_eq!(tools.len(), 2, "the facade and `find` need no approval: {tools:?}");
    assert_eq!(bank.payment_count(), 0);
}

#[tokio::test]
async fn edited_arguments_are_validated_and_used_and_reported_to_the_model() {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}});
    let pay = NativeTool::new("pay", "", schema, |arguments, _| async move {
        Ok(ToolResult::text(format!("paid {}", arguments["amount"])))
    });
    let edit = |amount: u32| -> ApprovalAnswer {
        let arguments = json!({ "amount": amount }).as_object().unwrap().clone();
        Approval::Edited { arguments }.into()
    };
    let person = Person::with_answers([edit(99), edit(3)]);
    let (builder, model) = TestModel::playing([call_pay(9), reply("ok")]);
    let outcome = run_with_approver(&person, builder.tool(pay.unwrap())).await;
    let result = tool_results(&outcome.history)[0];
    assert!(
        result.contains("paid 3") && result.contains(r#"changed the arguments of this call to {"amount":3}"#),
        "{result}"
    );
    let requests = person.requests();
    assert!(
        requests[1].rejected_edit.as_ref().unwrap().contains("/amount"),
        "{requests:?}"
    );
    assert_eq!(requests.len(), 2);
    assert_eq!(model.events_named("approval_decided")[0]["arguments"]["amount"], 3);
    // A person is not asked about a call that cannot run.
    let person = Person::default();
    let (builder, _) = TestModel::playing([call_pay(99), reply("ok")]);
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}});
    let pay = NativeTool::new("pay", "", schema, |_, _| async { Ok(ToolResult::text("paid")) }).unwrap();
    let outcome = run_with_approver(&person, builder.tool(pay)).await;
    assert!(tool_results(&outcome.history)[0].contains("/amount") && person.requests().is_empty());
}

#[tokio::test]
async fn answers_are_remembered_for_their_scope() {
    let for_session = ApprovalAnswer::from(Approval::Approved).with_scope(ApprovalScope::Session);
    let for_run = ApprovalAnswer::from(Approval::Approved).with_scope(ApprovalScope::Run);
    for (answer, request_count) in [(for_session, 1), (for_run, 2), (Approval::Approved.into(), 4)] {
        let (bank, person) = (Bank::default(), Person::with_answers([answer.clone(), answer]));
        let run_steps = |amount: u32| [call_pay(amount), call_pay(amount + 1), reply("ok")];
        let (builder, _) = TestModel::playing(run_steps(1).into_iter().chain(run_steps(3)));
        let mut conversation = builder
            .tools([bank.pay()])
            .approvals(approvals_by(&person))
            .build()
            .unwrap();
        conversation.run("go").await.unwrap();
        conversation.run("again").await.unwrap();
        assert_eq!((person.requests().len(), bank.payment_count()), (request_count, 4));
    }
}

#[tokio::test]
async fn remembered_answer_expires_when_the_definition_changes() {
    let (bank, person) = (Bank::default(), Person::default());
    let policy = ApprovalPolicy::of_mode(ApprovalMode::FirstTime);
    let approvals = Arc::new(Approvals::new(policy).with_approver(person.clone()));
    let second_pay = tool("pay", |_, _| Ok(ToolResult::text("paid another way")));
    let redefined_pay: Arc<dyn Tool> = Arc::new(toolwit_core::ToolExt::with_description(second_pay, "Pays more."));
    for (tool, request_count) in [(bank.pay(), 1), (bank.pay(), 1), (redefined_pay, 2)] {
        let (builder, _) = TestModel::playing([call_pay(1), reply("ok")]);
        let builder = builder.tools([tool]).shared_approvals(approvals.clone());
        builder.run("go").await.unwrap();
        assert_eq!(person.requests().len(), request_count);
    }
}

/// An approver that approves when it is notified.
struct NotifiedApprover(Arc<Notify>);

#[async_trait]
impl Approver for NotifiedApprover {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        self.0.notified().await;
        Approval::Approved.into()
    }
}

#[tokio::test]
async fn other_calls_run_while_one_waits_for_its_approval() {
    let bank = Bank::default();
    let approval = Arc::new(Notify::new());
    let notifier = approval.clone();
    // This tool notifies the approver. If its call had to wait for the approval of the other call, neither call would
    // ever end.
    let look = tool("look", move |_, _| {
        notifier.notify_one();
        Ok(ToolResult::text("seen"))
    });
    let steps = [call([("pay", json!({"amount": 1})), ("look", json!({}))]), reply("ok")];
    let (builder, _) = TestModel::playing(steps);
    let policy = ApprovalPolicy::default().with_rule(ApprovalRule::new("native#look", ApprovalMode::Never));
    let approvals = Approvals::new(policy).with_approver(NotifiedApprover(approval));
    let builder = builder.tools([bank.pay(), look]).approvals(approvals);
    let outcome = builder.run("go").await.unwrap();
    assert_eq!(tool_results(&outcome.history), ["paid 1", "seen"]);
}

#[tokio::test]
async fn cancelling_the_run_ends_the_wait_for_an_approval_and_the_call_does_not_run() {
    let bank = Bank::default();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let (builder, model) = TestModel::playing([call_pay(1), reply("ok")]);
    let builder = builder.observer(move |event: &Event, _: &Origin| {
        if matches!(event, Event::ApprovalRequested(_)) {
            token.cancel();
        }
    });
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(NotifiedApprover(Arc::default()));
    let mut conversation = builder.tools([bank.pay()]).approvals(approvals).build().unwrap();
    let error = conversation.turn("go").cancel(cancel).run().await.unwrap_err();
    assert_eq!((error.outcome.stop, bank.payment_count()), (StopReason::Cancelled, 0));
    assert_eq!(model.events_named("approval_decided")[0]["decision"], "cancelled");
    assert_valid(&error.outcome.history);
}

#[tokio::test]
async fn panic_of_an_approver_refuses_the_call() {
    let bank = Bank::default();
    let (builder, _) = TestModel::playing([call_pay(1), reply("ok")]);
    let panicking_approver = |_: &ApprovalRequest| -> Approval { panic!("the service is broken") };
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(panicking_approver);
    let builder = builder.tools([bank.pay()]).approvals(approvals);
    let outcome = builder.run("go").await.unwrap();
    assert_eq!(bank.payment_count(), 0);
    assert!(
        tool_results(&outcome.history)[0].contains("not run"),
        "{:?}",
        outcome.history
    );
}
