//! The time limit of a plugin while a person is asked about a call that it makes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::{Instant, pause, sleep};
use toolwit::limits::LimitOverrides;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalRequest, Approver, ToolCaller, ToolExt};
use toolwit::{ErrorKind, NativeTool, ToolContext, ToolResult, ToolSet};

use crate::host::{Setup, TestHost};
use crate::reach::{conversation, may_call, relay};

const PAY: &str = "native#pay";
const HOUR: Duration = Duration::from_secs(3600);

/// Approves after an hour.
struct SlowPerson;

#[async_trait]
impl Approver for SlowPerson {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        sleep(HOUR).await;
        Approval::Approved.into()
    }
}

/// A host whose guest `courier` has ten seconds for a call, and may call a tool that needs an approval and takes some time.
async fn host(time: Duration) -> TestHost {
    let limits = LimitOverrides::default().with_wall_max(Duration::from_secs(10));
    let mut host = conversation(Setup::new().limits(limits).grant(&may_call(&[PAY]))).await;
    let pay = NativeTool::new("pay", "Pays.", json!({"type": "object"}), move |_, _| async move {
        sleep(time).await;
        Ok(ToolResult::text("paid"))
    });
    let pay = pay.unwrap().with_approval(SlowPerson);
    // Compiled before the time stands still.
    host.call("relay", relay("native#none", &json!({}), 1)).await.ok();
    let tools = Arc::new(ToolSet::from_iter([Arc::new(pay) as _])) as Arc<dyn ToolCaller>;
    host.context = host.context.clone().with_tools(tools);
    host
}

#[tokio::test]
async fn waiting_for_an_answer_costs_no_time_of_the_plugin_and_the_approved_call_does() {
    let relay = relay(PAY, &json!({}), 1);
    let quick = host(Duration::from_secs(9)).await;
    let slow = host(Duration::from_secs(11)).await;
    pause();
    let started = Instant::now();
    let paid: Value = quick.value("relay", relay.clone()).await;
    assert!(paid.to_string().contains("paid"), "{paid}");
    assert!(started.elapsed() >= HOUR);
    let stopped = slow.call("relay", relay).await.unwrap_err();
    assert_eq!(stopped.kind, ErrorKind::Timeout, "{stopped}");
}
