//! Approval of calls: of the model, of tools and of agents, with every kind of answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::injection::Facade;
use toolwit_core::{
    Approval, ApprovalAnswer, ApprovalMode, ApprovalPolicy, ApprovalRequest, ApprovalRule, ApprovalScope, Approvals,
    Approver, EffectClass, NativeEntity, NoArguments, ToolDefinition, ToolId,
};

/// Counts the calls of `pay`, which writes.
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

    fn paid(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Records the requests, and answers them in order; without an answer, it approves.
#[derive(Clone, Default)]
struct Person {
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
    answers: Arc<Mutex<VecDeque<ApprovalAnswer>>>,
}

impl Person {
    fn answering(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            ..Self::default()
        }
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for Person {
    async fn approve(&self, request: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        self.asked.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| Approval::Approved.into())
    }
}

fn denied(reason: &str) -> ApprovalAnswer {
    let reason = reason.to_owned();
    Approval::Denied { reason }.into()
}

fn asking(person: &Person) -> Approvals {
    Approvals::new(ApprovalPolicy::default()).with_approver(person.clone())
}

fn pay(amount: u32) -> Step {
    call([("pay", json!({ "amount": amount }))])
}

/// A tool that calls `native#pay`, with an empty context if `hides_context` is set.
pub(super) struct Agency {
    definition: ToolDefinition,
    hides_context: bool,
}

pub(super) fn agency(hides_context: bool) -> Agency {
    let definition = ToolDefinition::new(ToolId::native("agency"), "agency", "", json!({"type": "object"}));
    Agency {
        definition: definition.with_effect(EffectClass::Read),
        hides_context,
    }
}

#[async_trait]
impl Tool for Agency {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let empty_context = ToolContext::new();
        let passed = if self.hides_context { &empty_context } else { context };
        context
            .tools()
            .unwrap()
            .call_tool("native#pay", arguments, passed)
            .await
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn denied_write_does_not_run_and_the_model_reads_the_reason() {
    let (bank, person) = (
        Bank::default(),
        Person::answering([denied("too much"), Approval::Approved.into()]),
    );
    let (builder, model) = TestModel::playing([pay(100), pay(1), reply("ok")]);
    let builder = builder.tools([bank.pay()]).approvals(asking(&person));
    let outcome = builder.run("go").await.unwrap();
    assert_valid(&outcome.history);
    let results = tool_results(&outcome.history);
    assert!(results[0].contains("not approved: too much"), "{}", results[0]);
    assert_eq!((results[1], bank.paid()), ("paid 1", 1));
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
    assert_eq!(bank.paid(), 0);
    assert_eq!(model.events_named("approval_decided")[0]["decision"], "unanswered");
}

#[tokio::test]
async fn nested_call_is_approved_with_its_callers_whatever_context_it_passes() {
    for hides_context in [false, true] {
        let (bank, person) = (Bank::default(), Person::answering([denied("no")]));
        let (builder, _) = TestModel::playing([call([("agency", json!({"amount": 7}))]), reply("ok")]);
        let builder = builder
            .tool(agency(hides_context))
            .tools([bank.pay()])
            .approvals(asking(&person));
        let outcome = builder.run("go").await.unwrap();
        assert!(
            tool_results(&outcome.history)[0].contains("not approved: no"),
            "{hides_context}"
        );
        assert_eq!(bank.paid(), 0);
        let asked = person.asked();
        assert_eq!((asked.len(), asked[0].tool.as_str()), (1, "native#pay"));
        assert_eq!(asked[0].arguments["amount"], 7);
        assert_eq!(asked[0].callers, [ToolId::native("agency")]);
    }
}

#[tokio::test]
async fn calls_of_agents_need_the_approval_of_the_outer_conversation() {
    let (bank, person) = (Bank::default(), Person::answering([denied("no")]));
    let (_, inner) = TestModel::playing([pay(5), reply("done")]);
    let agent = AgenticTool::new("clerk", "Pays.")
        .with_model(inner.clone())
        .with_tools([bank.pay()]);
    let (builder, _) = TestModel::playing([call([("clerk", json!({"task": "pay"}))]), reply("ok")]);
    builder.tool(agent).approvals(asking(&person)).run("go").await.unwrap();
    let asked = person.asked();
    assert_eq!(
        (asked.len(), bank.paid()),
        (1, 0),
        "the agent itself is not asked about"
    );
    assert_eq!(asked[0].tool, ToolId::native("pay"));
    assert_eq!(asked[0].callers, [ToolId::native("clerk")]);
}

#[tokio::test]
async fn tools_behind_facades_and_methods_of_entities_need_an_approval() {
    let (bank, person) = (Bank::default(), Person::answering([denied("no"), denied("no")]));
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
        pay(1),
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
    let asked: Vec<_> = person.asked().iter().map(|request| request.tool.to_string()).collect();
    assert_eq!(asked.len(), 2, "the facade and the search are free: {asked:?}");
    assert_eq!(bank.paid(), 0);
}

#[tokio::test]
async fn edited_arguments_are_validated_and_run_and_reported_to_the_model() {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}});
    let pay = NativeTool::new("pay", "", schema, |arguments, _| async move {
        Ok(ToolResult::text(format!("paid {}", arguments["amount"])))
    });
    let edit = |amount: u32| -> ApprovalAnswer {
        let arguments = json!({ "amount": amount }).as_object().unwrap().clone();
        Approval::Edited { arguments }.into()
    };
    let person = Person::answering([edit(99), edit(3)]);
    let (builder, model) = TestModel::playing([self::pay(9), reply("ok")]);
    let outcome = builder
        .tool(pay.unwrap())
        .approvals(asking(&person))
        .run("go")
        .await
        .unwrap();
    let result = tool_results(&outcome.history)[0];
    assert!(
        result.contains("paid 3") && result.contains(r#"changed the arguments of this call to {"amount":3}"#),
        "{result}"
    );
    let asked = person.asked();
    assert!(
        asked[1].rejected_edit.as_ref().unwrap().contains("/amount"),
        "{asked:?}"
    );
    assert_eq!(asked.len(), 2);
    assert_eq!(model.events_named("approval_decided")[0]["arguments"]["amount"], 3);
    // A person is not asked about a call that cannot run.
    let person = Person::default();
    let (builder, _) = TestModel::playing([self::pay(99), reply("ok")]);
    let schema = json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}});
    let pay = NativeTool::new("pay", "", schema, |_, _| async { Ok(ToolResult::text("paid")) }).unwrap();
    let outcome = builder.tool(pay).approvals(asking(&person)).run("go").await.unwrap();
    assert!(tool_results(&outcome.history)[0].contains("/amount") && person.asked().is_empty());
}

#[tokio::test]
async fn remembered_answers_have_a_scope() {
    let session = ApprovalAnswer::from(Approval::Approved).with_scope(ApprovalScope::Session);
    let run = ApprovalAnswer::from(Approval::Approved).with_scope(ApprovalScope::Run);
    for (answer, questions) in [(session, 1), (run, 2), (Approval::Approved.into(), 4)] {
        let (bank, person) = (Bank::default(), Person::answering([answer.clone(), answer]));
        let (builder, _) = TestModel::playing([pay(1), pay(2), reply("ok"), pay(3), pay(4), reply("ok")]);
        let mut conversation = builder.tools([bank.pay()]).approvals(asking(&person)).build().unwrap();
        conversation.run("go").await.unwrap();
        conversation.run("again").await.unwrap();
        assert_eq!((person.asked().len(), bank.paid()), (questions, 4));
    }
}

#[tokio::test]
async fn remembered_answer_ends_when_the_definition_changes() {
    let (bank, person) = (Bank::default(), Person::default());
    let policy = ApprovalPolicy::of_mode(ApprovalMode::FirstTime);
    let approvals = Arc::new(Approvals::new(policy).with_approver(person.clone()));
    let second_pay = tool("pay", |_, _| Ok(ToolResult::text("paid another way")));
    let renewed: Arc<dyn Tool> = Arc::new(toolwit_core::ToolExt::with_description(second_pay, "Pays more."));
    for (tool, questions) in [(bank.pay(), 1), (bank.pay(), 1), (renewed, 2)] {
        let (builder, _) = TestModel::playing([pay(1), reply("ok")]);
        let builder = builder.tools([tool]).shared_approvals(approvals.clone());
        builder.run("go").await.unwrap();
        assert_eq!(person.asked().len(), questions);
    }
}

/// Answers when it is notified.
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
    let go = Arc::new(Notify::new());
    let notifier = go.clone();
    // This tool lets the approver answer. If the call of the tool had to wait for the approval, the response would
    // never end.
    let look = tool("look", move |_, _| {
        notifier.notify_one();
        Ok(ToolResult::text("seen"))
    });
    let steps = [call([("pay", json!({"amount": 1})), ("look", json!({}))]), reply("ok")];
    let (builder, _) = TestModel::playing(steps);
    let policy = ApprovalPolicy::default().with_rule(ApprovalRule::new("native#look", ApprovalMode::Never));
    let approvals = Approvals::new(policy).with_approver(NotifiedApprover(go));
    let outcome = builder
        .tools([bank.pay(), look])
        .approvals(approvals)
        .run("go")
        .await
        .unwrap();
    assert_eq!(tool_results(&outcome.history), ["paid 1", "seen"]);
}

#[tokio::test]
async fn cancelling_the_run_ends_the_wait_and_nothing_runs() {
    let bank = Bank::default();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let (builder, model) = TestModel::playing([pay(1), reply("ok")]);
    let builder = builder.observer(move |event: &Event, _: &Origin| {
        if matches!(event, Event::ApprovalRequested(_)) {
            token.cancel();
        }
    });
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(NotifiedApprover(Arc::default()));
    let mut conversation = builder.tools([bank.pay()]).approvals(approvals).build().unwrap();
    let error = conversation.turn("go").cancel(cancel).run().await.unwrap_err();
    assert_eq!((error.outcome.stop, bank.paid()), (StopReason::Cancelled, 0));
    assert_eq!(model.events_named("approval_decided")[0]["decision"], "cancelled");
    assert_valid(&error.outcome.history);
}

#[tokio::test]
async fn approver_that_panics_refuses_the_call() {
    let bank = Bank::default();
    let (builder, _) = TestModel::playing([pay(1), reply("ok")]);
    let panics = |_: &ApprovalRequest| -> Approval { panic!("the service is broken") };
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(panics);
    let outcome = builder
        .tools([bank.pay()])
        .approvals(approvals)
        .run("go")
        .await
        .unwrap();
    assert_eq!(bank.paid(), 0);
    assert!(
        tool_results(&outcome.history)[0].contains("not run"),
        "{:?}",
        outcome.history
    );
}
