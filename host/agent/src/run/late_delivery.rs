//! Results of background calls, delivered between inferences.

use super::call_result::{UnrecordedResult, withhold_revealed_tools};
use super::run_state::RunState;
use crate::event::Event;
use toolwit_core::{Signal, ToolCall};

/// Appends the late results to the history in the order of their arrival. Returns the first signal among them.
///
/// Providers accept only one answer per call, directly after the call. A late result is therefore stored as the answer to
/// a second call with the same arguments. So it has the role of a tool result, never that of a user message.
pub(super) fn record_late_results(run: &mut RunState<'_>) -> Option<Signal> {
    let mut signal = None;
    while let Some((background, mut result)) = run.conversation.late_results.next() {
        if background
            .caller
            .is_some_and(|caller| caller != run.conversation.caller)
        {
            withhold_revealed_tools(&mut result, &background.tool.name);
        }
        let call = background.call;
        let history = &mut run.conversation.history;
        let second_call = ToolCall {
            id: history.claim_id(""),
            ..call.clone()
        };
        history.append_response(String::new(), vec![second_call.clone()], Vec::new());
        let (name, tool) = (background.tool.name.clone(), background.tool.definition.id.clone());
        let (id, is_error) = (second_call.id.clone(), result.is_error());
        tracing::debug!(tool = %name, is_error, "a late result arrived");
        let unrecorded = UnrecordedResult {
            call: second_call,
            tool: background.tool,
            arguments: background.arguments,
            result,
            heading: format!("[result of the background call {}]\n", call.id),
            is_complete: true,
        };
        let result = unrecorded.record(run, |content, artifacts| Event::LateResult {
            id,
            call: call.id,
            name,
            tool,
            is_error,
            content,
            artifacts,
        });
        signal = signal.or(result.signal);
    }
    signal
}
