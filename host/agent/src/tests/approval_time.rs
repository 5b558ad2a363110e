//! The time during which a call waits for a person's approval. It does not count against any time limit.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::approvals::{PassedContext, payer};
use super::*;
use crate::ProcessTools;
use crate::process::Budget;
use toolwit_core::{Approval, ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Approvals, Approver, ToolExt};

const HOUR: Duration = Duration::from_secs(3600);

/// An approver that approves after an hour.
struct SlowPerson;

#[async_trait]
impl Approver for SlowPerson {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        sleep(HOUR).await;
        Approval::Approved.into()
    }
}

/// Returns a tool that needs an approval and runs for this duration.
fn pay(duration: Duration) -> Arc<dyn Tool> {
    let pay = NativeTool::new("pay", "Pays.", json!({"type": "object"}), move |_, _| async move {
        sleep(duration).await;
        Ok(ToolResult::text("paid"))
    });
    Arc::new(pay.unwrap())
}

/// Runs a conversation in which the model calls one tool and a [`SlowPerson`] approves. The run and the process may take
/// a minute.
async fn run(tools: Vec<Arc<dyn Tool>>, tool_name: &str) -> Result<RunOutcome, RunError> {
    let (builder, _) = TestModel::playing([call([(tool_name, json!({}))]), reply("done")]);
    let limits = LoopLimits {
        wall_ms_max: 60_000,
        ..LoopLimits::default()
    };
    let budget = Budget {
        wall_max: Some(Duration::from_secs(60)),
        ..Budget::default()
    };
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(SlowPerson);
    let builder = builder.tools(tools).limits(limits).budget(budget);
    builder.approvals(approvals).build().unwrap().run("go").await
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_an_approval_does_not_count_against_the_limits_of_the_run_and_of_the_calling_tool() {
    let seconds = Duration::from_secs;
    for (tools, tool_name) in [
        (vec![pay(seconds(30))], "pay"),
        (
            vec![
                pay(seconds(4)),
                Arc::new(payer(PassedContext::Received).with_timeout(seconds(5))),
            ],
            "payer",
        ),
        (vec![pay(seconds(30)), Arc::new(payer(PassedContext::Empty))], "payer"),
    ] {
        let started = Instant::now();
        let outcome = run(tools, tool_name).await.unwrap();
        assert_eq!(tool_results(&outcome.history), ["paid"]);
        assert!(started.elapsed() >= HOUR);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_after_the_approval_counts_against_the_limits() {
    let seconds = Duration::from_secs;
    let error = run(vec![pay(seconds(61))], "pay").await.unwrap_err();
    assert!(
        matches!(error.failure, RunFailure::WallClockLimit { .. }),
        "{:?}",
        error.failure
    );
    let tools: Vec<Arc<dyn Tool>> = vec![
        pay(seconds(6)),
        Arc::new(payer(PassedContext::Received).with_timeout(seconds(5))),
    ];
    let outcome = run(tools, "payer").await.unwrap();
    assert!(
        tool_results(&outcome.history)[0].contains("took longer than 5s"),
        "{:?}",
        outcome.history
    );
}

#[tokio::test(start_paused = true)]
async fn the_budget_tool_excludes_the_wait_for_an_approval_and_the_status_tool_includes_it() {
    let steps = [
        call([("pay", json!({}))]),
        call([("process_budget", json!({}))]),
        call([("process_status", json!({}))]),
        reply("done"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(SlowPerson);
    let builder = builder.tools(ProcessTools::tools().unwrap());
    let builder = builder
        .tools([pay(Duration::from_secs(30))])
        .approvals(approvals)
        .budget(Budget {
            wall_max: Some(Duration::from_secs(60)),
            ..Budget::default()
        });
    let outcome = builder.build().unwrap().run("go").await.unwrap();
    let results = tool_results(&outcome.history);
    let parsed_result = |index: usize| -> Value { serde_json::from_str(results[index]).unwrap() };
    let budget = parsed_result(1);
    assert_eq!(
        (&budget["used"]["wall_ms"], &budget["left"]["wall_ms"]),
        (&json!(30_000), &json!(30_000))
    );
    assert_eq!(
        parsed_result(2)["running_ms"],
        3_630_000,
        "the process also existed during the wait"
    );
}
