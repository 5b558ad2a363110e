//! The log of calls.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::CallToolResponse;

use crate::call::RecordedCall;
use crate::metrics::Metrics;
use crate::principal::Principal;

/// Returns the outcome of a call, as the log and the metrics name it.
fn outcome(result: &Result<CallToolResponse, ErrorData>) -> &'static str {
    match result {
        Ok(CallToolResponse::InputRequired(_)) => "input_required",
        Ok(CallToolResponse::Task(_)) => "task",
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => "error",
        Ok(_) => "ok",
        Err(_) => "refused",
    }
}

/// Counts a call, and writes it to the log. The log has no arguments and no results.
pub(super) fn record(
    metrics: &Metrics,
    principal: &Principal,
    requested_name: &str,
    call: &RecordedCall,
    result: &Result<CallToolResponse, ErrorData>,
    duration: Duration,
) {
    let outcome = outcome(result);
    metrics.count_call(principal.group(), call.tool.as_ref(), outcome, duration);
    let tool = match &call.tool {
        Some(tool) => tool.as_str(),
        // The client chose this name, so it may be long.
        None => &requested_name[..requested_name.floor_char_boundary(80)],
    };
    tracing::info!(
        principal = principal.name(),
        tool,
        effect = call.effect.map(|effect| effect.class.as_str()),
        decision = call.decision,
        ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        outcome,
        error = call.error.map(|kind| kind.to_string()),
        "a call ended"
    );
}
