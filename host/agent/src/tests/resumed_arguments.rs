//! The arguments of earlier calls after a resume.

use super::journal::id;
use super::*;
use crate::injection::{Injection, InjectionContext};
use crate::{Journal, MemoryJournalStore};
use toolwit_core::{Approval, ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Approvals, Approver};

/// Changes the amount 9 of a call to 3, and approves every other call.
struct Cashier;

#[async_trait]
impl Approver for Cashier {
    async fn approve(&self, request: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        if request.arguments.get("amount") == Some(&json!(9)) {
            let arguments = json!({"amount": 3}).as_object().cloned().unwrap();
            return Approval::Edited { arguments }.into();
        }
        Approval::Approved.into()
    }
}

fn pay(amount: u32) -> Step {
    call([("pay", json!({ "amount": amount }))])
}

/// Returns a builder with a tool that pays, and a strategy that adds a receipt tool for each amount that was paid.
fn configured(steps: impl IntoIterator<Item = Step>) -> (ConversationBuilder, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let receipts = |context: &InjectionContext<'_>| match context.call().arguments.get("amount") {
        None => Injection::none(),
        Some(amount) => Injection::add(vec![echo(&format!("receipt_{amount}"))]),
    };
    let pay = tool("pay", |_, _| Ok(ToolResult::text("paid")));
    (builder.tools([pay]).strategy(receipts), model)
}

fn receipts() -> [Step; 2] {
    let calls = call([("receipt_3", json!({})), ("receipt_4", json!({}))]);
    [calls, reply("ok")]
}

#[tokio::test]
async fn a_resumed_call_log_has_the_arguments_that_a_person_edited() {
    let approvals = || Approvals::new(ApprovalPolicy::default()).with_approver(Cashier);
    let (builder, model) = configured([pay(9), pay(4), reply("done")]);
    let outcome = builder.approvals(approvals()).run("pay").await.unwrap();
    let (builder, _) = configured(receipts());
    let builder = builder.approvals(approvals()).history(outcome.history);
    let outcome = builder.resume(model.events()).run("show").await.unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[results.len() - 2..], ["receipt_3", "receipt_4"]);
}

#[tokio::test]
async fn the_call_log_from_a_journal_has_the_arguments_that_a_person_edited() {
    let approvals = || Approvals::new(ApprovalPolicy::default()).with_approver(Cashier);
    let store = MemoryJournalStore::new();
    let (builder, _) = configured([pay(9), pay(4), reply("done")]);
    let journal = Journal::create(&store, &id()).await.unwrap();
    builder
        .approvals(approvals())
        .journal(journal)
        .run("pay")
        .await
        .unwrap();
    let (builder, _) = configured(receipts());
    let journal = Journal::open(&store, &id()).await.unwrap();
    let outcome = builder
        .approvals(approvals())
        .journal(journal)
        .run("show")
        .await
        .unwrap();
    let results = tool_results(&outcome.history);
    assert_eq!(results[results.len() - 2..], ["receipt_3", "receipt_4"]);
}
