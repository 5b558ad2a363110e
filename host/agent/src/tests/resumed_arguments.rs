//! The arguments that strategies receive for earlier calls after a resume.

use super::journal::session_id;
use super::*;
use crate::injection::{Injection, InjectionContext};
use crate::{Journal, MemoryJournalStore};
use toolwit_core::{Approval, ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Approvals, Approver};

/// Changes the amount 9 of a call to 3, and approves every other call.
struct EditingApprover;

#[async_trait]
impl Approver for EditingApprover {
    async fn approve(&self, request: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        if request.arguments.get("amount") == Some(&json!(9)) {
            let arguments = json!({"amount": 3}).as_object().cloned().unwrap();
            return Approval::Edited { arguments }.into();
        }
        Approval::Approved.into()
    }
}

fn pay_step(amount: u32) -> Step {
    call([("pay", json!({ "amount": amount }))])
}

/// Returns the builder of a conversation with the tool `pay` and with a strategy that adds a receipt tool for each paid
/// amount. Also returns the model of the conversation.
fn configured(steps: impl IntoIterator<Item = Step>) -> (ConversationBuilder, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let add_receipt_tool = |context: &InjectionContext<'_>| match context.call().arguments.get("amount") {
        None => Injection::none(),
        Some(amount) => Injection::add(vec![echo(&format!("receipt_{amount}"))]),
    };
    let pay = tool("pay", |_, _| Ok(ToolResult::text("paid")));
    (builder.tools([pay]).strategy(add_receipt_tool), model)
}

/// Returns steps in which the model calls the receipt tools of the amounts 3 and 4.
fn receipt_steps() -> [Step; 2] {
    let calls = call([("receipt_3", json!({})), ("receipt_4", json!({}))]);
    [calls, reply("ok")]
}

#[tokio::test]
async fn a_resumed_call_log_has_the_arguments_that_a_person_edited() {
    let approvals = || Approvals::new(ApprovalPolicy::default()).with_approver(EditingApprover);
    let (builder, model) = configured([pay_step(9), pay_step(4), reply("done")]);
    let outcome = builder.approvals(approvals()).run("pay").await.unwrap();
    let (builder, _) = configured(receipt_steps());
    let builder = builder.approvals(approvals()).history(outcome.history);
    let outcome = builder.resume(model.events()).run("show").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[results.len() - 2..], ["receipt_3", "receipt_4"]);
}

#[tokio::test]
async fn the_call_log_from_a_journal_has_the_arguments_that_a_person_edited() {
    let approvals = || Approvals::new(ApprovalPolicy::default()).with_approver(EditingApprover);
    let store = MemoryJournalStore::new();
    let (builder, _) = configured([pay_step(9), pay_step(4), reply("done")]);
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    builder
        .approvals(approvals())
        .journal(journal)
        .run("pay")
        .await
        .unwrap();
    let (builder, _) = configured(receipt_steps());
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let outcome = builder
        .approvals(approvals())
        .journal(journal)
        .run("show")
        .await
        .unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[results.len() - 2..], ["receipt_3", "receipt_4"]);
}
